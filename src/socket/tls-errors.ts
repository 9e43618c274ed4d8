/**
 * Checks of the peer's certificate, and the wording of every TLS failure for the operator. OpenSSL verifies the chain,
 * but Node completes the handshake even where the chain is bad: both socket levels refuse the peer by these checks, in
 * full and in resumed handshakes.
 */
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { TlsFailure, TlsFailureKind } from './byte-socket.ts'
import type { TlsClientPlan, TlsHost } from './tls.ts'

/** Code of a connection whose peer ends TCP without the end of TLS: what it sent must not look whole (RFC 8446 6.1). */
export const TRUNCATED = 'ERR_TLS_TRUNCATED'

/** Defect of a certificate. */
interface Defect {
  readonly code: string
  readonly text: string
}

/**
 * Why a client is refused, or null. Checks dates again, because a resumed session can outlive its certificate.
 * `certificate`: of this handshake or of the one that it resumes. `chainError`: code of OpenSSL, '' for a good chain.
 */
export function clientCertificateError(
  verify: TlsHost['verifyClient'],
  certificate: PeerCertificate | null,
  chainError: string,
): TlsFailure | null {
  if (verify === 'none') return null
  if (certificate === null) return verify === 'optional' ? null : refused('', 'the client showed no certificate')
  const defect = chainDefect(chainError, certificate)
  return defect && refused(defect.code, `certificate of client ${printable(nameOf(certificate))}: ${defect.text}`)
}

/** SHA-256 of a verified certificate; see ByteSocket. */
export function thumbprintOf(certificate: PeerCertificate | null): string {
  return certificate === null
    ? ''
    : Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
}

/** Why a backend is not the one that was meant, or null. Parameters as for clients. */
export function backendCertificateError(
  plan: TlsClientPlan,
  host: string,
  certificate: PeerCertificate | null,
  chainError: string,
): TlsFailure | null {
  if (certificate === null) return refused('', `${host} showed no certificate`)
  const defect = chainDefect(chainError, certificate) ?? nameDefect(plan, host, certificate)
  return defect && refused(defect.code, `certificate of ${host}: ${defect.text}`)
}

function refused(code: string, cause: string): TlsFailure {
  return { kind: 'peer-certificate', code, cause }
}

const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID'

function nameDefect(plan: TlsClientPlan, host: string, certificate: PeerCertificate): Defect | null {
  if (plan.hostname === 'none' || checkServerIdentity(host, certificate) === undefined) return null
  const names = certificate.subjectaltname ?? `none, common name ${nameOf(certificate)}`
  return { code: WRONG_NAME, text: `is not for this host: altnames ${printable(names)} (${WRONG_NAME})` }
}

const ISSUER_UNKNOWN = 'a certificate of its chain is missing, or its issuer is not in the trust store'
const CHAIN_DEFECTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed, not in the trust store',
  SELF_SIGNED_CERT_IN_CHAIN: 'its chain ends in a root that is not in the trust store',
  UNABLE_TO_GET_ISSUER_CERT: ISSUER_UNKNOWN,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ISSUER_UNKNOWN,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ISSUER_UNKNOWN,
  INVALID_PURPOSE: 'is not meant for this use',
  CERT_REVOKED: 'is revoked',
  CERT_SIGNATURE_FAILURE: 'its signature is wrong',
}
const EXPIRED = 'CERT_HAS_EXPIRED'
const NOT_YET_VALID = 'CERT_NOT_YET_VALID'

function chainDefect(code: string, certificate: PeerCertificate): Defect | null {
  const now = Date.now()
  const until = Date.parse(certificate.valid_to)
  const from = Date.parse(certificate.valid_from)
  if (until < now) return { code: EXPIRED, text: `has expired (${EXPIRED}, valid to ${day(until)})` }
  if (from > now) return { code: NOT_YET_VALID, text: `is not valid yet (${NOT_YET_VALID}, valid from ${day(from)})` }
  if (code === '') return null
  if (code === EXPIRED) return { code, text: `a certificate of its chain has expired (${EXPIRED})` }
  return { code, text: `${CHAIN_DEFECTS[code] ?? 'is not accepted'} (${code})` }
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

const TEXT_MAX = 200

function nameOf({ subject }: PeerCertificate): string {
  return [subject?.CN ?? '(no name)'].flat().join(', ')
}

/** Text of the peer's certificate, made safe for a line of the log. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, TEXT_MAX)
}

/** OpenSSL's reasons in plain words. Reasons without a row are worded by their own names. */
const REASONS: Readonly<Record<string, string>> = {
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
/** Alerts about our certificate whose name does not say so. */
const OWN_CERTIFICATE_ALERTS = ['ALERT_HANDSHAKE_FAILURE', 'ALERT_UNKNOWN_CA']

/** True if the code is one of OpenSSL's; others are errno names. */
export function isTlsCode(code: string): boolean {
  return code.startsWith('ERR_SSL')
}

/** A handshake that OpenSSL has given up. `code`: as Node derives it from OpenSSL's reason, or an errno name. */
export function handshakeError(code: string): TlsFailure {
  const reason = reasonOf(code)
  return { kind: kindOf(reason), code, cause: `handshake: ${wordsOf(reason)} (${code})` }
}

/** A failure after the handshake: in TLS 1.3 a peer refuses our certificate, or misses it, only then. */
export function tlsError(code: string): TlsFailure {
  return { kind: 'tls', code, cause: `TLS: ${wordsOf(reasonOf(code))} (${code})` }
}

/** A handshake that ended with its connection. `code`: an errno name, '' for an ordinary end. */
export function handshakeAborted(code: string): TlsFailure {
  return { kind: 'handshake', code, cause: `handshake: the peer broke it off${code === '' ? '' : ` (${code})`}` }
}

/** Prefixes that name a TLS version say nothing about the reason. */
function reasonOf(code: string): string {
  return code.replace(/^ERR_SSL_/, '').replace(/^(?:(?:SSL|TLS)V\d+|SSL\/TLS)_/, '')
}

function wordsOf(reason: string): string {
  return REASONS[reason] ?? reason.toLowerCase().replaceAll('_', ' ')
}

function kindOf(reason: string): TlsFailureKind {
  if (OWN_CERTIFICATE_ALERTS.includes(reason)) return 'own-certificate'
  if (!reason.includes('CERTIFICATE')) return 'handshake'
  return reason.startsWith('ALERT_') ? 'own-certificate' : 'peer-certificate'
}
