package hw

// Accelerators returns the GPUs of m, ascending, or all devices where it has none: rules
// such as "a layer per device" are about these.
func (m *Machine) Accelerators() []uint8 {
	var gpus, all []uint8
	for d := range m.Devices {
		all = append(all, uint8(d))
		if m.Devices[d].Kind == GPU {
			gpus = append(gpus, uint8(d))
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
