package measure

import (
	"errors"

	"placer/hw/gpu"
)

// frame is what surrounds a step: the origin, stream 0, from which all others
// start and at which they meet, and the events that time it.
type frame struct {
	start, end gpu.Event
	forked     gpu.Event
	joined     []gpu.Event // [streams]
}

// origin returns stream 0 and the GPU that it is on.
func (x *contexts) origin() (gpu.Stream, *card) { return x.streams[0], x.at[x.c.streams[0].dev] }

func (x *contexts) newFrame() (f *frame, err error) {
	f = &frame{joined: make([]gpu.Event, len(x.streams))}
	if len(x.streams) == 0 {
		return nil, errors.New("every device is the host's: there is no GPU to measure on")
	}
	err = x.eachStream(0, func(i int, _ gpu.Stream) (err error) {
		f.joined[i], err = x.d.NewEvent(false)
		return err
	})
	if err != nil {
		return f, err
	}
	if err := x.on(0); err != nil {
		return f, err
	}
	for _, e := range []*gpu.Event{&f.start, &f.end} {
		if *e, err = x.d.NewEvent(true); err != nil {
			return f, err
		}
	}
	f.forked, err = x.d.NewEvent(false)
	return f, err
}

func (f *frame) close(x *contexts) {
	gpu.DestroyEvents(x.d, append([]gpu.Event{f.start, f.end, f.forked}, f.joined...)...)
}

// fork makes every stream start behind the origin.
func (f *frame) fork(x *contexts) error {
	if err := x.on(0); err != nil {
		return err
	}
	if err := x.d.Record(f.forked, x.streams[0]); err != nil {
		return err
	}
	return x.eachStream(1, func(_ int, s gpu.Stream) error { return x.d.Wait(s, f.forked) })
}

// join makes the origin wait for every stream.
func (f *frame) join(x *contexts) error {
	if err := x.eachStream(1, func(i int, s gpu.Stream) error { return x.d.Record(f.joined[i], s) }); err != nil {
		return err
	}
	if err := x.on(0); err != nil {
		return err
	}
	for _, e := range f.joined[1:] {
		if err := x.d.Wait(x.streams[0], e); err != nil {
			return err
		}
	}
	return nil
}
