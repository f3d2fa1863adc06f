"""What the packages that run plans share: files, the placer program, the protocol of measurements (docs/pytorch.md)."""
