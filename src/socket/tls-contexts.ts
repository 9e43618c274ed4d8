/**
 * OpenSSL contexts made from plans. A context is immutable; a new plan makes new ones, so that a handshake sees one
 * plan from its first byte to its last.
 */
import { constants, createHash, X509Certificate } from 'node:crypto'
import { createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { CacheUsage } from '../runtime/cache-usage.ts'
import { Evictions } from '../runtime/lru-options.ts'
import type { TlsClientPlan, TlsHost, TlsServerPlan, TlsProtocolSettings } from './tls.ts'

/** The suites of TLS 1.3, and those of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325 4.2). */
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
export const ALPN_PROTOCOL = 'http/1.1'
/** Time in which a session can be resumed. */
const SESSION_SECONDS = 3600
const SESSIONS_MAX = 256

/** Options of both sides. Node's OpenSSL has no compression; renegotiation is refused (RFC 9325 3.5). */
function commonOptions(terms: TlsProtocolSettings) {
  return {
    minVersion: terms.minVersion,
    maxVersion: terms.maxVersion,
    ciphers: terms.ciphers === '' ? SECURE_CIPHERS : terms.ciphers,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_COMPRESSION,
    // Every certificate of a trust store is trusted, roots or not, as in Java (D30).
    allowPartialTrustChain: true,
  }
}

/** One virtual host, ready for handshakes. */
export interface HostContext {
  readonly context: SecureContext
  readonly verifyClient: TlsHost['verifyClient']
  /** Identifies how clients are verified: equal where the mode and the trusted certificates are equal. */
  readonly clientAuthKey: string
}

/** The contexts of all hosts of one plan. */
export class ServerContexts {
  readonly #default: HostContext
  readonly #named = new Map<string, HostContext>()
  /** Some hosts verify clients in another way than the default host. */
  readonly clientAuthDiffers: boolean

  /** Throws when OpenSSL refuses the plan. */
  constructor(plan: TlsServerPlan) {
    this.#default = hostContext(plan, plan)
    for (const host of plan.hosts) {
      const context = hostContext(plan, host)
      for (const name of host.names) if (!this.#named.has(name)) this.#named.set(name, context)
    }
    const { clientAuthKey } = this.#default
    this.clientAuthDiffers = this.#named.values().some(host => host.clientAuthKey !== clientAuthKey)
  }

  /** The only host, or null: then SNI selects the host. */
  get single(): HostContext | null {
    return this.#named.size === 0 ? this.#default : null
  }

  /**
   * The context for a name in lower case: of the exact name, else of a wildcard for its first label, else the default.
   */
  contextFor(name: string): HostContext {
    const exact = this.#named.get(name)
    if (exact !== undefined) return exact
    const dot = name.indexOf('.')
    return (dot > 0 ? this.#named.get(`*${name.slice(dot)}`) : undefined) ?? this.#default
  }
}

function hostContext(plan: TlsServerPlan, host: TlsHost): HostContext {
  const { identity, verifyClient, ca } = host
  const clientAuthKey = clientAuthKeyOf(host)
  const context = createSecureContext({
    ...commonOptions(plan),
    cert: identity.cert,
    key: identity.key,
    // An empty list keeps Node's public roots from vouching for clients.
    ca: verifyClient === 'none' ? [] : trusted(ca),
    honorCipherOrder: true,
    ticketKeys: Buffer.from(plan.ticketKeys),
    sessionTimeout: SESSION_SECONDS,
    // A session of another context is ignored: a full handshake follows, with the current checks.
    sessionIdContext: clientAuthKey,
  })
  return { context, verifyClient, clientAuthKey }
}

/** Throws on text that is no certificate: OpenSSL skips it in silence, and every client would be refused. */
function trusted(ca: readonly string[]): string[] {
  if (ca.length === 0) throw new Error('the trust store holds no certificate')
  return ca.map(certificate => new X509Certificate(certificate).toString())
}

/** 32 bytes, the longest session context of OpenSSL. The order in a trust store makes no difference. */
function clientAuthKeyOf({ verifyClient, ca }: TlsHost): string {
  const hash = createHash('sha256').update(verifyClient)
  if (verifyClient !== 'none') {
    const certificates = new Set(ca.map(certificate => certificate.trim()))
    for (const certificate of [...certificates].sort()) hash.update('\0').update(certificate)
  }
  return hash.digest('hex').slice(0, 32)
}

/** A session with a backend, and the certificate of its full handshake: a resumed handshake shows none. */
export interface TlsSession {
  readonly session: Buffer
  readonly certificate: PeerCertificate
}

/** The context of a route to a backend, and its resumable sessions. */
export class ClientContext {
  readonly plan: TlsClientPlan
  readonly context: SecureContext
  readonly #evictions = new Evictions()
  readonly #sessions = new LRUCache<string, TlsSession>({
    max: SESSIONS_MAX,
    ttl: SESSION_SECONDS * 1000,
    dispose: this.#evictions.dispose,
  })
  #hits = 0
  #misses = 0

  /** Throws when OpenSSL refuses the plan. */
  constructor(plan: TlsClientPlan) {
    this.plan = plan
    this.context = createSecureContext({
      ...commonOptions(plan),
      ...(plan.ca === null ? {} : { ca: trusted(plan.ca) }),
      ...(plan.identity === null ? {} : { cert: plan.identity.cert, key: plan.identity.key }),
    })
  }

  usage(): CacheUsage {
    const { count: evictions } = this.#evictions
    return { entries: this.#sessions.size, evictions, hits: this.#hits, misses: this.#misses }
  }

  /** Takes the last session with this host, for one use: a ticket used twice links connections (RFC 8446 C.4). */
  takeSession(host: string): TlsSession | null {
    const session = this.#sessions.get(host)
    if (session === undefined) {
      this.#misses++
      return null
    }
    this.#hits++
    this.#sessions.delete(host)
    return session
  }

  /** Stores a session whose peer passed all checks. */
  storeSession(host: string, session: TlsSession): void {
    this.#sessions.set(host, session)
  }
}
