"""Seams: the small interfaces and values that packages of different layers share."""
