"""Container images of the site's own registry: pushed once, preheated, and compared."""
