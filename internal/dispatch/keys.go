package dispatch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"placer/internal/faults"
)

// Names of the files of a folder of keys.
const (
	authorityFile = "ca.pem"     // whom to trust; every folder has it
	seedFile      = "user.seed"  // who one is; secret
	certFile      = "server.pem" // the hub's
	certKeyFile   = "server.key" // the hub's; secret
	usersFile     = "users.json" // the hub's: public keys of controller and workers
	configFile    = "nats.conf"  // for a hub of one's own
)

// users are the public keys that a hub lets in.
type users struct {
	Controller string   `json:"controller"`
	Workers    []string `json:"workers"`
}

// keysConfig says which keys to make.
type keysConfig struct {
	Workers int
	// Hosts are the names and addresses under which workers reach the hub.
	Hosts []string
	Valid time.Duration
}

// DefaultKeys are for one worker on this host, for a year.
func DefaultKeys() keysConfig {
	return keysConfig{Workers: 1, Hosts: []string{"localhost", "127.0.0.1"}, Valid: 365 * 24 * time.Hour}
}

// mostKeys is the most workers that keys are made for at once: the hub's configuration names
// each of them.
const mostKeys = 100_000

// Validate reports every fault.
func (c keysConfig) Validate() error {
	var errs faults.List
	errs.If(c.Workers < 1 || c.Workers > mostKeys, "keys: %d workers, want 1 to %d", c.Workers, mostKeys)
	errs.If(len(c.Hosts) == 0 || slices.Contains(c.Hosts, ""), "keys: hosts %q, want at least one, and none empty", c.Hosts)
	errs.If(c.Valid <= 0, "keys: valid for %v, want more than 0", c.Valid)
	return errors.Join(errs...)
}

// WriteKeys makes the folder dir with a folder hub for the side of the search
// and a folder worker-N for each worker: an own authority, whose key is not
// kept, a certificate for the hub, and an nkey each. dir must not exist. now is
// the present.
func WriteKeys(dir string, c keysConfig, now time.Time) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keys: %s exists already: keys are never overwritten", dir)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(parent, ".keys-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := fillKeys(made, c, now); err != nil {
		return err
	}
	return os.Rename(made, dir)
}

func fillKeys(dir string, c keysConfig, now time.Time) error {
	authority, cert, key, err := certificates(c, now)
	if err != nil {
		return err
	}
	var u users
	hub := filepath.Join(dir, "hub")
	if u.Controller, err = writeUser(hub, authority); err != nil {
		return err
	}
	for k := range c.Workers {
		public, err := writeUser(filepath.Join(dir, fmt.Sprintf("worker-%d", k+1)), authority)
		if err != nil {
			return err
		}
		u.Workers = append(u.Workers, public)
	}
	list, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{certFile, cert}, {certKeyFile, key}, {usersFile, append(list, '\n')}, {configFile, []byte(serverConfig(&u))}} {
		if err := os.WriteFile(filepath.Join(hub, f.name), f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeUser makes a folder with a new nkey and returns its public part.
func writeUser(dir string, authority []byte) (public string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer user.Wipe()
	seed, err := user.Seed()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, seedFile), append(seed, '\n'), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, authorityFile), authority, 0o600); err != nil {
		return "", err
	}
	return user.PublicKey()
}

// certificates returns an authority and a hub's certificate and key, as PEM.
func certificates(c keysConfig, now time.Time) (authority, cert, key []byte, err error) {
	root, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	begin, end := now.Add(-time.Hour), now.Add(c.Valid)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "placer authority"}, NotBefore: begin, NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &root.PublicKey, root)
	if err != nil {
		return nil, nil, nil, err
	}
	hub := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "placer hub"}, NotBefore: begin, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range c.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			hub.IPAddresses = append(hub.IPAddresses, ip)
		} else {
			hub.DNSNames = append(hub.DNSNames, h)
		}
	}
	hubDER, err := x509.CreateCertificate(rand.Reader, hub, ca, &own.PublicKey, root)
	if err != nil {
		return nil, nil, nil, err
	}
	ownDER, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, nil, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return block("CERTIFICATE", rootDER), block("CERTIFICATE", hubDER), block("PRIVATE KEY", ownDER), nil
}

// identity is what a folder of keys holds for one side.
type identity struct {
	authority *x509.CertPool
	user      nkeys.KeyPair
	public    string
}

func readIdentity(dir string) (*identity, error) {
	text, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	id := &identity{authority: x509.NewCertPool()}
	if !id.authority.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("keys: %s holds no certificate", filepath.Join(dir, authorityFile))
	}
	path := filepath.Join(dir, seedFile)
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if id.user, err = nkeys.ParseDecoratedNKey(seed); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", path, err)
	}
	if id.public, err = id.user.PublicKey(); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", path, err)
	}
	return id, nil
}

func (id *identity) tls() *tls.Config {
	return &tls.Config{RootCAs: id.authority, MinVersion: tls.VersionTLS13}
}
