/**
 * The client connections of one reactor: its listeners, admission, PROXY headers, and the connections that are open.
 * No function here runs per request.
 */
import { Parser } from '../http1/llhttp.ts'
import { MessageReader } from '../http1/message-reader.ts'
import { ExpectedSection, RepeatedSections } from '../http1/repeated-sections.ts'
import type { ConnectionListBuilder } from '../observe/connection-list.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import { mergeSockets, type SocketTable } from '../plan/listening-sockets.ts'
import { CLIENT_SLOTS, type ListenerPlan, type LivePlan, type ReactorPlan } from '../plan/reactor-plan.ts'
import type { ConnectionContext, ConnectionContexts } from '../proxy/exchange/connection-context.ts'
import { newIdPrefix } from '../proxy/exchange/correlation-id.ts'
import { Admission } from '../proxy/source/admission.ts'
import type { Client, ConnectionCallbacks } from '../proxy/source/connection-callbacks.ts'
import { ProxyHeaderReader, refuseProxy } from '../proxy/source/proxy-header-reader.ts'
import { type DecodedFields, RequestCounter, RequestDecoder } from '../proxy/source/request-decoder.ts'
import { StrippedResponseFields } from '../proxy/source/response-writer.ts'
import { SourceConnection } from '../proxy/source/source-connection.ts'
import { type CacheUsage, sumOfUsages } from '../runtime/cache-usage.ts'
import { OpenObjects } from '../runtime/open-objects.ts'
import { SharedGauge } from '../runtime/shared-gauge.ts'
import type { ByteSocket } from '../socket/byte-socket.ts'
import { CidrList, unmappedAddress } from '../runtime/ip-address.ts'
import type { ConnectionAddresses } from '../socket/proxy-header.ts'
import type { TlsServer } from '../socket/tls.ts'
import { isSecured, Listener } from './listener.ts'
import type { ReactorOptions } from './reactor-options.ts'
import { clientLimits, forwardingKey } from './settings.ts'

interface ClientConnectionsContext {
  readonly options: ReactorOptions
  readonly contexts: ConnectionContexts
  readonly metrics: MetricsColumn
  /** Connections of the whole machine. */
  readonly gauge: SharedGauge
  readonly tls: TlsServer | null
  readonly callbacks: ConnectionCallbacks
  /** A connection has ended before its client was known. */
  readonly ended: () => void
}

export class ClientConnections {
  readonly #context: ClientConnectionsContext
  readonly #contexts: ConnectionContexts
  readonly #admission: Admission
  readonly #listeners: readonly Listener[]
  readonly #open = new OpenObjects<SourceConnection>()
  /** Accepted connections whose PROXY header is not complete. */
  readonly #headerReaders = new Set<ProxyHeaderReader>()
  readonly #idPrefix = newIdPrefix()
  readonly #requestCounter = new RequestCounter()
  /** Response fields that are stripped, by transport of the client. */
  readonly #stripped: Readonly<Record<keyof ConnectionContexts, StrippedResponseFields>>
  /** Fields that clients repeat, by transport, because the limits differ. */
  readonly #repeatedFields = {
    plain: new RepeatedSections<DecodedFields>(),
    secured: new RepeatedSections<DecodedFields>(),
  }
  #trusted: CidrList
  /** Settings that known clients were made with. */
  #forwardingKey: string
  /** N of http-incoming-N. */
  #nextId = 1

  constructor(plan: ReactorPlan, context: ClientConnectionsContext) {
    this.#context = context
    this.#contexts = context.contexts
    const { plain, secured } = context.contexts
    this.#stripped = {
      plain: new StrippedResponseFields(plain.settings),
      secured: new StrippedResponseFields(secured.settings),
    }
    this.#trusted = new CidrList(plan.http.trusted_proxies)
    this.#forwardingKey = forwardingKey(plan.http)
    this.#admission = newAdmission(plan, context)
    this.#listeners = plan.listeners.map(listener => this.#newListener(listener))
  }

  #newListener(plan: ListenerPlan): Listener {
    const { options, tls } = this.#context
    return new Listener(plan, isSecured(plan) ? tls : null, {
      level: options.level,
      // A single reactor too: a successor may have several (D177).
      reusePort: process.platform === 'linux',
      newClient: (address, listener) => this.#newClient(address, listener),
      accept: (socket, listener) => this.#accept(socket, listener),
      threw: error => options.report('error', 'bug', { CAUSE_OF_ERROR: String(error) }),
    })
  }

  // ---- listeners --------------------------------------------------------------------------------------------------

  /** Starts listening; resolves with the ports, in the order of the listeners. */
  listen(): Promise<readonly number[]> {
    return Promise.all(this.#listeners.map(listener => listener.open()))
  }

  /** The listening sockets by name, for another process. */
  get sockets(): SocketTable {
    return mergeSockets(this.#listeners.map(listener => listener.sockets))
  }

  get isListening(): boolean {
    return this.#listeners.some(listener => listener.isOpen)
  }

  stopListening(): void {
    for (const listener of this.#listeners) listener.close()
  }

  /** Stops accepting until a descriptor is free; returns the number of listeners that paused. */
  pause(): number {
    return this.#listeners.filter(listener => listener.pause()).length
  }

  // ---- accepting --------------------------------------------------------------------------------------------------

  #accept(socket: ByteSocket, listener: Listener): void {
    const address = unmappedAddress(socket.remoteAddress)
    const { scheme, proxies } = listener
    const context = this.#contexts[transportOf(scheme)]
    if (proxies !== null && !proxies.includes(address)) {
      const cause = 'its sender is in no network of listener.proxy_protocol.networks'
      refuseProxy(socket, address, cause, context)
    } else if (!this.#admission.enter(scheme)) socket.reset()
    else if (proxies === null) this.#openConnection(socket, listener, address, null, 0)
    else this.#readProxyHeader(socket, listener, address, context)
  }

  /** The connection is admitted; its client is not known yet. */
  #readProxyHeader(socket: ByteSocket, listener: Listener, proxy: string, context: ConnectionContext): void {
    const reader: ProxyHeaderReader = new ProxyHeaderReader(socket, proxy, context, {
      read: (addresses, rest) => {
        this.#headerReaders.delete(reader)
        return this.#openConnection(socket, listener, addresses?.source ?? proxy, addresses, rest)
      },
      closed: () => {
        if (!this.#headerReaders.delete(reader)) return
        this.#admission.leave(listener.scheme)
        this.#context.ended()
      },
    })
    this.#headerReaders.add(reader)
    reader.open()
  }

  /**
   * Opens an admitted connection. `addresses`: as the PROXY header has them. `rest`: bytes that were read already, at
   * the start of the shared read buffer. Returns the view for the next read.
   */
  #openConnection(
    socket: ByteSocket,
    listener: Listener,
    address: string,
    addresses: ConnectionAddresses | null,
    rest: number,
  ): Uint8Array | undefined {
    const { scheme } = listener
    if (!this.#admission.admitClient(address, scheme)) {
      socket.reset()
      return undefined
    }
    const transport = transportOf(scheme)
    const context = this.#contexts[transport]
    const parser = Parser.forRequests(context.part.spans)
    if (parser === undefined) {
      this.#admission.release(address, scheme)
      socket.reset()
      return undefined
    }
    const { requestKinds, requestHeads, requestLimits: limits, trailerHeads, memory } = context
    const fields = this.#repeatedFields[transport]
    const client = listener.client(address)
    const reader = new MessageReader(parser, requestKinds, requestHeads, trailerHeads, limits, fields, client.expected)
    const isTls = isSecured(listener)
    const connection = new SourceConnection(
      this.#nextId++,
      isTls ? listener.secure(socket, memory.shared.view.slice(0, rest)) : socket,
      client,
      reader,
      this.#stripped[transport],
      context,
      this.#context.callbacks,
      addresses,
    )
    this.#open.add(connection)
    connection.open()
    return rest === 0 || isTls ? undefined : connection.resumeRead(rest)
  }

  #newClient(address: string, { scheme, kind }: Listener): Client {
    const { options } = this.#context
    const logsAgents = options.accessLog !== null || options.analytics !== null
    const isTrusted = this.#trusted.includes(address)
    const traces = options.traces?.sampling ?? null
    const context = this.#contexts[transportOf(scheme)]
    const decoder = new RequestDecoder(context, this.#requestCounter, { address, scheme }, isTrusted, logsAgents)
    return { address, idPrefix: this.#idPrefix, decoder, expected: new ExpectedSection(), scheme, kind, traces }
  }

  // ---- open connections -------------------------------------------------------------------------------------------

  /** Open connections, those with an incomplete PROXY header included. */
  get size(): number {
    return this.#open.size + this.#headerReaders.size
  }

  show(lister: ConnectionListBuilder): void {
    for (const connection of this.#open) connection.show(lister)
  }

  /** A connection of a known client has ended. */
  closed(connection: SourceConnection): void {
    this.#open.delete(connection)
    const { address, scheme } = connection.client
    this.#admission.release(address, scheme)
  }

  /** Closes idle connections. */
  closeIdle(): void {
    for (const connection of [...this.#open]) connection.drain()
  }

  /** Aborts every exchange. */
  cutOff(): void {
    for (const connection of [...this.#open]) connection.cutOff()
    for (const reader of [...this.#headerReaders]) reader.close()
  }

  /** Usage of the cache of fields that clients repeat. */
  fieldsUsage(): CacheUsage {
    return sumOfUsages([this.#repeatedFields.plain.usage(), this.#repeatedFields.secured.usage()])
  }

  // ---- reload -----------------------------------------------------------------------------------------------------

  /**
   * Builds what a reload changes, and returns a function that applies it once the contexts have the new settings.
   * Trusted proxies and forwarding fields apply from the next request of each client on.
   */
  prepare(live: LivePlan): () => void {
    const trusted = new CidrList(live.http.trusted_proxies)
    return () => {
      for (const transport of ['plain', 'secured'] as const) {
        this.#repeatedFields[transport].clear()
        this.#stripped[transport].update(this.#contexts[transport].settings)
      }
      this.#admission.setLimits(clientLimits(live))
      if (forwardingKey(live.http) !== this.#forwardingKey) this.#updateClients(trusted, live.http)
    }
  }

  #updateClients(trusted: CidrList, http: LivePlan['http']): void {
    this.#trusted = trusted
    this.#forwardingKey = forwardingKey(http)
    for (const listener of this.#listeners) listener.forgetClients()
    for (const { client } of this.#open) client.decoder.update(trusted.includes(client.address))
  }
}

function newAdmission(plan: ReactorPlan, { gauge, metrics }: ClientConnectionsContext): Admission {
  const { http, clients, clientSeed, reactor, reactors, connectionLimits } = plan
  const byClient = http.max_connections_per_client < 0 ? null : new SharedGauge(clients, reactors, reactor)
  return new Admission(
    gauge,
    clientLimits(plan),
    connectionLimits.clients,
    byClient,
    http.max_connections_per_client,
    CLIENT_SLOTS,
    clientSeed,
    metrics,
  )
}

function transportOf(scheme: Client['scheme']): keyof ConnectionContexts {
  return scheme === 'https' ? 'secured' : 'plain'
}
