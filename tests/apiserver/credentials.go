// Certificates, the key of the ServiceAccounts' tokens and the administrator's kubeconfig. What a
// directory already has is kept, so that a restarted API server accepts the same clients.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const lifetime = 7 * 24 * time.Hour

func kubeconfigPath(dir string) string {
	return filepath.Join(dir, "admin.kubeconfig")
}

// writeCredentials makes all files once; the kubeconfig is written each time, for the port can differ.
func writeCredentials(dir, server string) error {
	_, err := os.Stat(filepath.Join(dir, "ca.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		err = createCertificates(dir)
	}
	if err != nil {
		return err
	}
	cluster := &clientcmdapi.Cluster{Server: server}
	user := &clientcmdapi.AuthInfo{}
	for name, target := range map[string]*[]byte{
		"ca.crt": &cluster.CertificateAuthorityData, "admin.crt": &user.ClientCertificateData,
		"admin.key": &user.ClientKeyData,
	} {
		if *target, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = cluster
	config.AuthInfos["admin"] = user
	config.Contexts["admin@test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "admin"}
	config.CurrentContext = "admin@test"
	return clientcmd.WriteToFile(*config, kubeconfigPath(dir))
}

func createCertificates(dir string) error {
	caKey, err := newKey()
	if err != nil {
		return err
	}
	ca := template("vc-scheduler test CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	server := template("kube-apiserver")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	admin := template("admin", "system:masters") // the group that RBAC never refuses
	admin.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := sign(dir, "server", server, ca, caKey); err != nil {
		return err
	}
	if err := sign(dir, "admin", admin, ca, caKey); err != nil {
		return err
	}
	tokenKey, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(dir, "service-account", tokenKey); err != nil {
		return err
	}
	// Last, because its presence says that all others are there.
	return writeCertificate(dir, "ca", ca, ca, &caKey.PublicKey, caKey)
}

func template(name string, groups ...string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func sign(dir, name string, leaf, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := writeKey(dir, name, key); err != nil {
		return err
	}
	return writeCertificate(dir, name, leaf, ca, &key.PublicKey, caKey)
}

func writeCertificate(
	dir, name string, leaf, ca *x509.Certificate, public *ecdsa.PublicKey, caKey *ecdsa.PrivateKey,
) error {
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, public, caKey)
	if err != nil {
		return err
	}
	return writePem(filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
}

func writeKey(dir, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePem(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", der)
}

func writePem(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
