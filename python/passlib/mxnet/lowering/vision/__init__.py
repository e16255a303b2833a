"""Operators on images, feature maps and bounding boxes."""
