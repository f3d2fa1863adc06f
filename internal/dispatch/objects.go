package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go/jetstream"
)

// objectName returns the name of an object with that content.
func objectName(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// refreshObject stores the object of that name anew if it is as old as that, by the hub's clock.
func refreshObject(ctx context.Context, js jetstream.JetStream, store jetstream.ObjectStore, name string, old time.Duration) error {
	info, err := store.GetInfo(ctx, name)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, "OBJ_"+objectBucket) // whose description says what time it is there
	if err != nil || stream.CachedInfo().TimeStamp.Sub(info.ModTime) < old {
		return err
	}
	packed, err := store.GetBytes(ctx, name)
	if err != nil {
		return err
	}
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: name, Opts: info.Opts}, bytes.NewReader(packed))
	return err
}

// putObject stores data under its hash, name, in messages of at most limit bytes.
func putObject(ctx context.Context, store jetstream.ObjectStore, name string, data []byte, limit int64) error {
	chunk := &jetstream.ObjectMetaOptions{ChunkSize: uint32(min(128<<10, max(limit/2, 1)))}
	_, err := store.Put(ctx, jetstream.ObjectMeta{Name: name, Opts: chunk}, bytes.NewReader(s2.Encode(nil, data)))
	return err
}

// getObject returns the object of that name and checks that it is. A read whose
// messages stay away is begun again, with more time.
func getObject(ctx context.Context, js jetstream.JetStream, name string) (data []byte, err error) {
	store, err := js.ObjectStore(ctx, objectBucket)
	if err != nil {
		return nil, err
	}
	for wait := time.Second; wait <= 16*time.Second && ctx.Err() == nil; wait *= 2 {
		if data, err = readObject(ctx, store, name, wait); err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("object %.12s: %w", name, err)
	}
	return data, nil
}

func readObject(ctx context.Context, store jetstream.ObjectStore, name string, wait time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	packed, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	data, err := expand(packed)
	if err != nil {
		return nil, err
	}
	if objectName(data) != name {
		return nil, errors.New("its content is another")
	}
	return data, nil
}

// An object expands to at most mostExpansion times its size beyond a mebibyte; texts of
// graphs do to 30 times.
const mostExpansion = 256

// expand returns what s2 has compressed. What packed says of itself claims no memory
// beyond that bound.
func expand(packed []byte) ([]byte, error) {
	n, err := s2.DecodedLen(packed)
	if err != nil {
		return nil, err
	}
	if n > 1<<20+mostExpansion*len(packed) {
		return nil, fmt.Errorf("%d bytes that expand to %d, more than %d times as many", len(packed), n, mostExpansion)
	}
	return s2.Decode(nil, packed)
}

// encodeRanks returns the bytes of a problem's ranks, [N].
func encodeRanks(ranks []int32) []byte {
	b := make([]byte, 4*len(ranks))
	for i, r := range ranks {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(r))
	}
	return b
}

func decodeRanks(b []byte) ([]int32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("ranks of %d bytes", len(b))
	}
	ranks := make([]int32, len(b)/4)
	for i := range ranks {
		ranks[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return ranks, nil
}
