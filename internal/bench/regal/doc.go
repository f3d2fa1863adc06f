// Package regal owns the experiment that repeats table 1 of REGAL (Paliwal et
// al., ICLR 2020), and the training of REGAL's policy for it.
package regal
