"""The front of the language: text is read into syntax objects, expanded hygienically, and leaves as core forms."""
