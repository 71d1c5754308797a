"""From what was sent to what was meant, with a receipt for every change."""
