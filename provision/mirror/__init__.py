"""The site's file mirror: the service that takes uploads, and the client of it."""
