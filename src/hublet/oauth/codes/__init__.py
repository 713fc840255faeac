"""Authorization codes: issued to a browser, redeemed by an app, once."""
