"""What goes into a ticket, one file a collector; `provision.ticket.table` lists them."""
