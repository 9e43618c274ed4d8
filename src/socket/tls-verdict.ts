/**
 * Who is at the other end, and if it is not the right one or the handshake fails, why, in words for the operator.
 * OpenSSL has checked the chain of certificates, but Node ends no handshake for it: that is decided here, on both
 * socket levels, for full handshakes and resumed ones alike.
 */
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { TlsClientPlan, TlsHost } from './tls.ts'

/** Code of a connection whose peer ends TCP without the end of TLS: what it sent must not look whole (RFC 8446 6.1). */
export const TRUNCATED = 'ERR_TLS_TRUNCATED'

/** What is known after a handshake. */
interface PeerFacts {
  /** Code of OpenSSL's verdict about the chain, '' if it leads to a trusted certificate. */
  readonly chainError: string
  /** What the peer showed, now or in the handshake that is resumed; null for nothing. */
  readonly certificate: PeerCertificate | null
}

/** Why a client may not come in, or null. A session that is resumed can outlive its certificate. */
export function clientFault(verify: TlsHost['verifyClient'], facts: PeerFacts): string | null {
  const { certificate } = facts
  if (verify === 'none') return null
  if (certificate === null) return verify === 'optional' ? null : 'the client showed no certificate'
  const fault = chainFault(facts.chainError, certificate)
  return fault === null ? null : `certificate of client ${printable(nameOf(certificate))}: ${fault}`
}

/** What a peer is known by whose certificate was accepted: see ByteSocket. */
export function thumbprintOf(certificate: PeerCertificate | null): string {
  return certificate === null
    ? ''
    : Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

/** Why a backend is not the one that was meant, or null. */
export function backendFault(plan: TlsClientPlan, host: string, facts: PeerFacts): string | null {
  const { certificate } = facts
  if (certificate === null) return `${host} showed no certificate`
  const fault = chainFault(facts.chainError, certificate) ?? nameFault(plan, host, certificate)
  return fault === null ? null : `certificate of ${host}: ${fault}`
}

function nameFault(plan: TlsClientPlan, host: string, certificate: PeerCertificate): string | null {
  if (plan.hostname === 'none' || checkServerIdentity(host, certificate) === undefined) return null
  const names = certificate.subjectaltname ?? `none, common name ${nameOf(certificate)}`
  return `is not for this host: altnames ${printable(names)} (ERR_TLS_CERT_ALTNAME_INVALID)`
}

const CHAIN_FAULTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed, not in the trust store',
  SELF_SIGNED_CERT_IN_CHAIN: 'its chain ends in a root that is not in the trust store',
  UNABLE_TO_GET_ISSUER_CERT: 'a certificate of its chain is missing, or its issuer is not in the trust store',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'a certificate of its chain is missing, or its issuer is not in the trust store',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'a certificate of its chain is missing, or its issuer is not in the trust store',
  INVALID_PURPOSE: 'is not meant for this use',
  CERT_REVOKED: 'is revoked',
  CERT_SIGNATURE_FAILURE: 'its signature is wrong',
}

function chainFault(code: string, certificate: PeerCertificate): string | null {
  const now = Date.now()
  const until = Date.parse(certificate.valid_to)
  const from = Date.parse(certificate.valid_from)
  if (until < now) return `has expired (CERT_HAS_EXPIRED, valid to ${day(until)})`
  if (from > now) return `is not valid yet (CERT_NOT_YET_VALID, valid from ${day(from)})`
  if (code === '') return null
  if (code === 'CERT_HAS_EXPIRED') return 'a certificate of its chain has expired (CERT_HAS_EXPIRED)'
  return `${CHAIN_FAULTS[code] ?? 'is not accepted'} (${code})`
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

const TEXT_MAX = 200

function nameOf({ subject }: PeerCertificate): string {
  return [subject?.CN ?? '(no name)'].flat().join(', ')
}

/** What the peer wrote into its certificate, fit for a line of a log. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, TEXT_MAX)
}

/** OpenSSL's codes in the words of who has to act. A code that names a TLS version says nothing of it. */
const HANDSHAKE_FAULTS: Readonly<Record<string, string>> = {
  HTTP_REQUEST: 'plain HTTP came where TLS is spoken',
  HTTPS_PROXY_REQUEST: 'a plain CONNECT came where TLS is spoken',
  WRONG_VERSION_NUMBER: 'the peer does not speak TLS here, or only a version that is not allowed',
  UNSUPPORTED_PROTOCOL: 'no shared protocol version',
  VERSION_TOO_LOW: 'no shared protocol version',
  ALERT_PROTOCOL_VERSION: 'no shared protocol version, says the peer',
  NO_SHARED_CIPHER: 'no shared cipher suite',
  NO_CIPHERS_AVAILABLE: 'the configured ciphers leave no suite',
  NO_PROTOCOLS_AVAILABLE: 'the configured versions leave no protocol',
  ALERT_HANDSHAKE_FAILURE: 'the peer found no common terms, or misses a certificate of ours',
  NO_SUITABLE_SIGNATURE_ALGORITHM: 'no shared signature algorithm',
  NO_APPLICATION_PROTOCOL: 'the client does not offer http/1.1',
  ALERT_NO_APPLICATION_PROTOCOL: 'the peer does not offer http/1.1',
  PEER_DID_NOT_RETURN_A_CERTIFICATE: 'the client showed no certificate',
  ALERT_CERTIFICATE_REQUIRED: 'the peer asks for a certificate of ours',
  ALERT_BAD_CERTIFICATE: 'the peer does not accept our certificate',
  ALERT_CERTIFICATE_EXPIRED: 'the peer says that our certificate has expired',
  ALERT_CERTIFICATE_UNKNOWN: 'the peer does not accept our certificate',
  ALERT_UNKNOWN_CA: 'the peer does not know the issuer of our certificate',
  ALERT_UNRECOGNIZED_NAME: 'the peer knows no host of this name',
  UNRECOGNIZED_NAME: 'the peer knows no host of this name',
}

/** `code`: as Node derives it from OpenSSL's reason, or an errno name. */
export function handshakeFault(code: string): string {
  return `handshake: ${wordsOf(code)} (${code})`
}

/** The same once the handshake is done here: in TLS 1.3 a peer refuses our certificate, or misses it, after that. */
export function lossOf(code: string): string {
  return code.startsWith('ERR_SSL_') ? `TLS: ${wordsOf(code)} (${code})` : code
}

function wordsOf(code: string): string {
  const reason = code.replace(/^ERR_SSL_/, '').replace(/^(?:(?:SSL|TLS)V\d+|SSL\/TLS)_/, '')
  return HANDSHAKE_FAULTS[reason] ?? reason.toLowerCase().replaceAll('_', ' ')
}

/** The connection ended before the handshake did. `code` is an errno name, '' for an ordinary end. */
export function brokenOffFault(code: string): string {
  return `handshake: the peer broke it off${code === '' ? '' : ` (${code})`}`
}
