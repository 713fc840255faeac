-- Collections: lists of repositories, papers and other collections, with notes, order and upvotes.
SELECT 1;
