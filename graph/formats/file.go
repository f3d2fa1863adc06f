package formats

import (
	"fmt"
	"io"
	"os"
	"strings"

	"placer/graph"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/foreign"
	"placer/graph/formats/onnx"
	"placer/graph/formats/pipedream"
	"placer/graph/formats/times"
	"placer/internal/fsx"
	"placer/units"
)

// File is what a graph file holds.
type File struct {
	Form  Form
	Graph *graph.Graph
	// Seconds are the op times of a file that does not tell devices apart, [N]; nil:
	// it gives none.
	Seconds []units.Seconds
	// Times are the op times of a file that does, with its machine; nil: none.
	Times *times.Table
	// Notes are remarks for the reader: what the importer had to assume.
	Notes []string
	// Dims are the names of what the file leaves open and --dim gives a size: symbolic
	// dimensions, trip counts of loops. UnknownDims are those of the caller's that the
	// file does not have.
	Dims, UnknownDims []string
	// Sizes are what the file itself says of its Dims, for readers that give none; not every
	// form does.
	Sizes map[string]int64

	// Counts are what the file itself holds, where its form's nodes are not the graph's
	// ops; zeros for other forms.
	Counts Counts

	// What the forms have besides; nil for other forms.
	ONNX         *onnx.Summary
	Partitioning *dnnpart.Instance // reads and writes splits
	Profile      *pipedream.Instance
}

// Counts are the nodes and edges of a file.
type Counts struct{ Nodes, Edges int }

// Read reads the graph file whose bytes are data, in whatever form, and does not
// keep data. What gzip has compressed is expanded. name is the file's name, for errors
// and for the graph; cfg is for ONNX files, and its Dims for every form that leaves sizes
// open. A file in no form that is read gives an error that says what it looks like.
func Read(data []byte, name string, cfg onnx.Config) (*File, error) {
	data, err := fsx.Expand(data, name, foreign.MaxFile)
	if err != nil {
		return nil, err
	}
	form, err := sniff(data, name)
	if err != nil {
		return nil, err
	}
	f, err := form.read(data, name, cfg)
	if err != nil {
		return nil, err
	}
	f.Form = form
	return f, nil
}

// ReadFile is Read of the file at path. A regular file is mapped, not read: the
// weights of an ONNX model are never touched. Of files of external data, which have to be in
// its folder, small constants alone are read, where a shape may depend on them.
func ReadFile(path string, cfg onnx.Config) (f *File, err error) {
	if cfg.External == nil {
		b := newBeside(path)
		defer b.close()
		cfg.External = b.read
	}
	err = with(path, func(data []byte) error {
		f, err = Read(data, path, cfg)
		return err
	})
	return f, err
}

// maxHead is how many bytes of a file that is too long for the forms in text they see.
const maxHead = 1 << 20

// Sniff returns the form of data, the bytes of the file of that name, which gzip may
// have compressed.
func Sniff(data []byte, name string) (Form, error) {
	data, err := fsx.Expand(data, name, foreign.MaxFile)
	if err != nil {
		return Form{}, err
	}
	return sniff(data, name)
}

// sniff is Sniff of what is not compressed.
func sniff(data []byte, name string) (Form, error) {
	if len(data) == 0 {
		return Form{}, fmt.Errorf("%s: the file is empty", name)
	}
	text := data // what forms in text look at, some of them as a copy
	if len(data) > foreign.MaxFile {
		text = data[:maxHead] // enough to tell which one it is too long for
	}
	for _, form := range Forms() {
		if form.Name == onnxName && !form.sniff(data) || form.Name != onnxName && !form.sniff(text) {
			continue
		}
		if form.Name != onnxName && !form.header && len(data) > foreign.MaxFile {
			return Form{}, fmt.Errorf("%s: the file is longer than %d bytes", name, foreign.MaxFile)
		}
		return form, nil
	}
	if is := other(data); is != "" {
		return Form{}, fmt.Errorf("%s: looks like %s; the forms that are read: %s", name, is, names(""))
	}
	if strings.HasSuffix(name, ".py") {
		return Form{}, fmt.Errorf("%s: is a Python program: 'python -m placer_torch capture' makes a graph of a PyTorch model in it (docs/pytorch.md)", name)
	}
	return Form{}, fmt.Errorf("%s: is text in none of the forms that are read: %s; ONNX files are binary", name, names(onnxName))
}

// SniffFile is Sniff of the file at path.
func SniffFile(path string) (form Form, err error) {
	err = with(path, func(data []byte) error {
		form, err = Sniff(data, path)
		return err
	})
	return form, err
}

// maxStream bounds what is read from a pipe, which cannot be mapped: an ONNX file is
// one message of protocol buffers, of at most 2 GiB.
const maxStream = 2 << 30

// ReadFrom is Read of what r gives, such as stdin; it may be a file.
func ReadFrom(r io.Reader, name string, cfg onnx.Config) (*File, error) {
	data, err := fsx.ReadAll(r, name, maxStream)
	if err != nil {
		return nil, err
	}
	return Read(data, name, cfg)
}

// with calls use with the bytes of the file at path, which are gone when it returns.
func with(path string, use func(data []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s: is a folder", path)
	}
	if info.Mode().IsRegular() && info.Size() > 0 {
		if data, unmap, err := mapFile(f, info.Size()); err == nil {
			defer unmap()
			return use(data)
		}
	}
	data, err := fsx.ReadAll(f, path, maxStream)
	if err != nil {
		return err
	}
	return use(data)
}
