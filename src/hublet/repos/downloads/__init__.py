"""Files of repositories, sent to who may read them."""
