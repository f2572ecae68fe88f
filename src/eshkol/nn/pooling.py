"""Pooling as layers: one line each, made of the row of the op table that computes it (rows.py)."""

from __future__ import annotations

from eshkol.nn.rows import layer_of

MaxPool1d = layer_of("MaxPool1d", "max_pool1d")
MaxPool2d = layer_of("MaxPool2d", "max_pool2d")
MaxPool3d = layer_of("MaxPool3d", "max_pool3d")
AvgPool1d = layer_of("AvgPool1d", "avg_pool1d")
AvgPool2d = layer_of("AvgPool2d", "avg_pool2d")
AvgPool3d = layer_of("AvgPool3d", "avg_pool3d")
AdaptiveAvgPool1d = layer_of("AdaptiveAvgPool1d", "adaptive_avg_pool1d")
AdaptiveAvgPool2d = layer_of("AdaptiveAvgPool2d", "adaptive_avg_pool2d")
AdaptiveAvgPool3d = layer_of("AdaptiveAvgPool3d", "adaptive_avg_pool3d")
AdaptiveMaxPool1d = layer_of("AdaptiveMaxPool1d", "adaptive_max_pool1d")
AdaptiveMaxPool2d = layer_of("AdaptiveMaxPool2d", "adaptive_max_pool2d")
AdaptiveMaxPool3d = layer_of("AdaptiveMaxPool3d", "adaptive_max_pool3d")
GlobalAvgPool2d = layer_of("GlobalAvgPool2d", "global_avg_pool2d")
GlobalMaxPool2d = layer_of("GlobalMaxPool2d", "global_max_pool2d")
