package hw

// Accelerators returns the GPUs of m, ascending, or all devices where it has none: rules
// such as "a layer per device" are about these. m has at most MaxPlaced devices.
func (m *Machine) Accelerators() (of []uint8) {
	for _, d := range m.Ranks() {
		of = append(of, uint8(d))
	}
	return of
}

// Ranks returns the same of machines of any size: the devices that ranks of a strategy go on.
func (m *Machine) Ranks() []int {
	var gpus, all []int
	for d := range m.Devices {
		all = append(all, d)
		if m.Devices[d].Kind == GPU {
			gpus = append(gpus, d)
		}
	}
	if len(gpus) > 0 {
		return gpus
	}
	return all
}

// Host returns the CPU beside m's GPUs, the one with the most memory and of those the first;
// -1 where m has no GPU, or no CPU.
func (m *Machine) Host() int {
	host, gpus := -1, false
	for d := range m.Devices {
		switch v := &m.Devices[d]; {
		case v.Kind == GPU:
			gpus = true
		case host < 0 || v.Memory > m.Devices[host].Memory:
			host = d
		}
	}
	if !gpus {
		return -1
	}
	return host
}
