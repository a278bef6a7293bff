"""Texts with labelled spans (entities, slots): their record, and readers of the usual formats."""
