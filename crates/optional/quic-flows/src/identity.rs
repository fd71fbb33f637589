//! Authentication of the ends: the receiver has an Ed25519 key; the sender knows its public half and accepts no other.
//!
//! The key is sent without a certificate around it (RFC 7250). Both halves follow from a secret of 32 bytes that the
//! ends share by other means.

use std::sync::Arc;

use ccgym_net::error::{Error, Result};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use quinn_proto::rustls::client::ClientConfig;
use quinn_proto::rustls::crypto::{ring, verify_tls13_signature_with_raw_key, CryptoProvider};
use quinn_proto::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use quinn_proto::rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerConfig};
use quinn_proto::rustls::sign::CertifiedKey;
use quinn_proto::rustls::{self, version, CertificateError, DigitallySignedStruct, PeerIncompatible, SignatureScheme};

/// Prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 §7).
const PKCS8_ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// TLS with a key that follows from a secret.
pub struct Identity {
    provider: Arc<CryptoProvider>,
    key: Arc<CertifiedKey>,
}

impl Identity {
    /// Make the key of this secret.
    ///
    /// # Errors
    /// The library refuses the key; this is not expected.
    pub fn new(secret: &[u8; 32]) -> Result<Self> {
        let pkcs8 = PrivatePkcs8KeyDer::from([&PKCS8_ED25519[..], secret].concat());
        let key = ring::sign::any_eddsa_type(&pkcs8).map_err(failed)?;
        let Some(public) = key.public_key() else { return Err(failed("a key without a public half")) };
        let public = CertificateDer::from(public.as_ref().to_vec());
        let provider = Arc::new(ring::default_provider());
        Ok(Self { provider, key: Arc::new(CertifiedKey::new(vec![public], key)) })
    }

    /// Return the TLS settings of the receiver.
    ///
    /// # Errors
    /// As [`Identity::new`].
    pub fn server(&self) -> Result<Arc<QuicServerConfig>> {
        let config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.key.clone())));
        QuicServerConfig::try_from(config).map(Arc::new).map_err(failed)
    }

    /// Return the TLS settings of the sender.
    ///
    /// # Errors
    /// As [`Identity::new`].
    pub fn client(&self) -> Result<Arc<QuicClientConfig>> {
        let expected = Expected { provider: self.provider.clone(), key: self.key.clone() };
        let config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(expected))
            .with_no_client_auth();
        QuicClientConfig::try_from(config).map(Arc::new).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::of("run-failed", "preparing TLS", error)
}

/// Verifier that accepts one public key.
#[derive(Debug)]
struct Expected {
    provider: Arc<CryptoProvider>,
    key: Arc<CertifiedKey>,
}

impl ServerCertVerifier for Expected {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.key.cert.first().is_some_and(|key| key.as_ref() == end_entity.as_ref()) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
