// Package device owns the policy network's arithmetic on a GPU: an nn.Device. It
// runs the operations of an nn.Program forward and backward, the PPO objective and
// the optimiser with kernels of its own (kernels.cu, kept as PTX) and cuBLAS.
// Parameters, their moments, features, lists of neighbours and all that lies
// between stay in device memory; a run sends samples there and brings logits or a
// loss back.
//
//	d, err := device.Open(driver, blas, 0)
//	backend, err := nn.NewBackend(nn.Config{Workers: 1, Device: d})
//	net, err := gonet.New(config, random, backend) // as on the CPU from here on
//
// Results agree with the CPU's within rounding, and equal runs give equal bits:
// no kernel adds in an order of chance. Sums and products are in f32, those of the
// objective in f64, as on the CPU.
package device
