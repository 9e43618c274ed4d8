/**
 * OpenSSL's contexts as the plans want them. A context is immutable once made; a new plan makes new ones, so that a
 * handshake sees one plan from its first byte to its last.
 */
import { constants, createHash, X509Certificate } from 'node:crypto'
import { createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { TlsClientPlan, TlsHost, TlsServerPlan, TlsTerms } from './tls.ts'

/** TLS 1.3, and of TLS 1.2 what has forward secrecy and authenticated encryption (RFC 9325 4.2). */
const SECURE_CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/** The only protocol spoken here (RFC 7301). */
export const APPLICATION_PROTOCOL = 'http/1.1'
/** How long a session can be resumed. */
const SESSION_SECONDS = 3600
const SESSIONS_MAX = 256

/** The same of both sides. No compression is in Node's OpenSSL; renegotiation is refused (RFC 9325 3.5). */
function termsOf(terms: TlsTerms) {
  return {
    minVersion: terms.minVersion,
    maxVersion: terms.maxVersion,
    ciphers: terms.ciphers === '' ? SECURE_CIPHERS : terms.ciphers,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_COMPRESSION,
    // Any certificate of a trust store is trusted, not only roots: key stores of other products are used that way.
    allowPartialTrustChain: true,
  }
}

/** One virtual host, ready for handshakes. */
export interface HostContext {
  readonly context: SecureContext
  readonly verifyClient: TlsHost['verifyClient']
  /** What clients are asked for: the same text where they are checked in the same way against the same certificates. */
  readonly asks: string
}

/** The hosts of one plan. */
export class ServerContexts {
  readonly #default: HostContext
  readonly #named = new Map<string, HostContext>()
  /** Whether it depends on the host what clients are asked for. */
  readonly differ: boolean

  /** Throws when OpenSSL refuses the plan. */
  constructor(plan: TlsServerPlan) {
    this.#default = hostContext(plan, plan)
    for (const host of plan.hosts) {
      const context = hostContext(plan, host)
      for (const name of host.names) if (!this.#named.has(name)) this.#named.set(name, context)
    }
    const { asks } = this.#default
    this.differ = this.#named.values().some(host => host.asks !== asks)
  }

  /** The only host, or null: then it depends on the name that the client asks for. */
  get only(): HostContext | null {
    return this.#named.size === 0 ? this.#default : null
  }

  /** The host of a name in lower case: an exact one, a wildcard for its first label, or the default. */
  of(name: string): HostContext {
    const exact = this.#named.get(name)
    if (exact !== undefined) return exact
    const dot = name.indexOf('.')
    return (dot > 0 ? this.#named.get(`*${name.slice(dot)}`) : undefined) ?? this.#default
  }
}

function hostContext(plan: TlsServerPlan, host: TlsHost): HostContext {
  const { identity, verifyClient, ca } = host
  const asks = askedBy(host)
  const context = createSecureContext({
    ...termsOf(plan),
    cert: identity.cert,
    key: identity.key,
    // An empty list, so that Node's public roots never vouch for clients.
    ca: verifyClient === 'none' ? [] : trusted(ca),
    honorCipherOrder: true,
    ticketKeys: Buffer.from(plan.ticketKeys),
    sessionTimeout: SESSION_SECONDS,
    // OpenSSL takes a session of another context for none and makes a full handshake, with the checks of now.
    sessionIdContext: asks,
  })
  return { context, verifyClient, asks }
}

/** OpenSSL passes over what is no certificate, and nobody would be let in. */
function trusted(ca: readonly string[]): string[] {
  if (ca.length === 0) throw new Error('the trust store holds no certificate')
  return ca.map(certificate => new X509Certificate(certificate).toString())
}

/** In 32 bytes, which is what OpenSSL has for the context of sessions. A trust store has no order. */
function askedBy({ verifyClient, ca }: TlsHost): string {
  const hash = createHash('sha256').update(verifyClient)
  if (verifyClient !== 'none') {
    const certificates = new Set(ca.map(certificate => certificate.trim()))
    for (const certificate of [...certificates].sort()) hash.update('\0').update(certificate)
  }
  return hash.digest('hex').slice(0, 32)
}

/** A session with a backend, and the certificate that it was made with: a resumed handshake shows none to a client. */
export interface KeptSession {
  readonly session: Buffer
  readonly certificate: PeerCertificate
}

/** The context of a route to a backend, and the sessions that were made with it. */
export class ClientContext {
  readonly plan: TlsClientPlan
  readonly context: SecureContext
  readonly #sessions = new LRUCache<string, KeptSession>({ max: SESSIONS_MAX, ttl: SESSION_SECONDS * 1000 })

  /** Throws when OpenSSL refuses the plan. */
  constructor(plan: TlsClientPlan) {
    this.plan = plan
    this.context = createSecureContext({
      ...termsOf(plan),
      ...(plan.ca === null ? {} : { ca: trusted(plan.ca) }),
      ...(plan.identity === null ? {} : { cert: plan.identity.cert, key: plan.identity.key }),
    })
  }

  /** The last session with this host, for one use: a ticket that is used twice tells observers of it (RFC 8446 C.4). */
  takeSession(host: string): KeptSession | null {
    const kept = this.#sessions.get(host)
    if (kept === undefined) return null
    this.#sessions.delete(host)
    return kept
  }

  /** Only sessions whose peer was found to be the right one. */
  keepSession(host: string, kept: KeptSession): void {
    this.#sessions.set(host, kept)
  }
}
