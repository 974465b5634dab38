"""The wire format: heads and runs encoded as bytes, frames and their seal.  Imports core only."""
