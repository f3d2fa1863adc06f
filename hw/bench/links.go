package bench

import (
	"context"
	"fmt"

	"placer/hw/gpu"
	"placer/units"
)

// links measures every direction between two of the devices.
func (r *Result) links(ctx context.Context, cfg *Config, d gpu.Driver, b gpu.BLAS, devices []int) error {
	for _, from := range devices {
		for _, to := range devices {
			if from == to {
				continue
			}
			if cfg.Progress != nil {
				cfg.Progress(fmt.Sprintf("GPU %d to GPU %d", from, to))
			}
			x, err := measureLink(ctx, cfg, d, b, from, to)
			if err != nil {
				return fmt.Errorf("GPU %d to GPU %d: %w", from, to, err)
			}
			r.Links = append(r.Links, x)
		}
	}
	return nil
}

func measureLink(ctx context.Context, cfg *Config, d gpu.Driver, b gpu.BLAS, from, to int) (x link, err error) {
	x = link{From: from, To: to}
	largest := uint64(cfg.Messages[len(cfg.Messages)-1])
	there, err := gpu.Enter(d, to)
	if err != nil {
		return x, err
	}
	defer d.Release(to)
	dst, err := d.Alloc(largest)
	if err != nil {
		return x, err
	}
	defer func() { // the context of from is gone by then
		_ = d.SetCurrent(there)
		d.Free(dst)
	}()
	l, err := open(ctx, cfg, d, b, from)
	if err != nil {
		return x, err
	}
	defer l.close()
	if x.Direct, err = d.CanPeer(from, to); err != nil {
		return x, err
	}
	if x.Direct {
		if err := d.EnablePeer(there); err != nil {
			return x, err
		}
	}
	x.Points, x.Line, err = l.messages(min(l.size, largest), func(bytes units.Bytes) (stat, error) {
		return l.repeat("", 100, func(int) error { return d.Peer(dst, there, l.buffer, l.context, uint64(bytes), l.stream) })
	})
	return x, err
}
