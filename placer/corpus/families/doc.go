// Package families owns the graphs that policies learn from: families of networks whose
// members are drawn at random by name, which of them are too near each other for one to
// be held out while another is trained on, and the nets that no workload is like.
package families
