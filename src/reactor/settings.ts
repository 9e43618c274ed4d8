/** From the configuration's sections to the settings that connections read, and to those that a reload changes. */
import type { Configuration } from '../config/catalogue.ts'
import { CALLER_LINES_MAX } from '../exchange/caller.ts'
import type { Settings } from '../exchange/surroundings.ts'
import type { ReaderLimits } from '../http1/message-reader.ts'

type Passthru = Configuration['transport.passthru_http']

export function settingsOf(http: Passthru, responseMs: number): Settings {
  const preserved = new Set(http['http.headers.preserve'].map(name => name.toLowerCase()))
  return {
    socketTimeoutMs: http['http.socket.timeout'],
    connectTimeoutMs: http['http.connection.timeout'],
    responseMs,
    headerReadMs: http['header.read_timeout'],
    bodyReadMs: http['body.read_timeout'],
    keepAliveMs: http['keepalive.timeout'],
    targetKeepAliveMs: http['sender.keepalive.timeout'],
    tunnelIdleMs: http['tunnel.idle_timeout'],
    headerBytesMax: http['header.max_bytes'],
    headerCountMax: http['header.max_count'],
    targetBytesMax: http['target.max_bytes'],
    bodyBytesMax: http['body.max_bytes'],
    pipelineBytesMax: http['pipeline.max_bytes'],
    extensionBytesMax: http['chunk.max_extension_bytes'],
    trailerBytesMax: http['trailer.max_bytes'],
    responseHeaderBytesMax: http['response.header.max_bytes'],
    connectionsPerHostMax: http['http.max.connection.per.host.port'],
    abortOnHalfClose: http.abort_on_half_close,
    closesTargets: http.disable_connection_keepalive,
    preservesServer: http.preserve_http_server_name || preserved.has('server'),
    preservesUserAgent: http['http.user.agent.preserve'] || preserved.has('user-agent'),
    preservesHost: preserved.has('host'),
    correlationField: http['correlation.header'],
    correlationStart: `${http['correlation.header']}: `,
    forwardedFields: http['forwarded.headers'],
  }
}

/**
 * The settings of now, in the object that every connection has in hand: none has to look for them anywhere else. Memory
 * was cut by the sizes of the start, and every head is read by its name of the correlation field; they stay.
 */
export function renewSettings(settings: Settings, http: Passthru, responseMs: number): void {
  const { headerBytesMax, headerCountMax, responseHeaderBytesMax, trailerBytesMax } = settings
  const { correlationField, correlationStart } = settings
  Object.assign(settings, settingsOf(http, responseMs), {
    ...{ headerBytesMax, headerCountMax, responseHeaderBytesMax, trailerBytesMax },
    ...{ correlationField, correlationStart },
  })
}

/** Room for what is added to a head: path of the endpoint, Host, forwarding fields; each of them has a limit. */
const HEAD_EXTRA_BYTES = 8192

/** The longest head that leaves, in bytes. */
export function composerBytes(settings: Settings): number {
  // A field line of four bytes, the shortest there is, leaves with a space more.
  const trailers = settings.trailerBytesMax * 1.25
  const longest = Math.max(settings.headerBytesMax, settings.responseHeaderBytesMax, trailers)
  return longest + HEAD_EXTRA_BYTES + CALLER_LINES_MAX
}

/** What the readers of all client connections keep to. */
export function requestLimits(settings: Settings): ReaderLimits {
  const { headerBytesMax, targetBytesMax, extensionBytesMax, trailerBytesMax } = settings
  return { headBytesMax: headerBytesMax, targetBytesMax, extensionBytesMax, trailerBytesMax }
}

/** The same of backend connections. */
export function responseLimits(settings: Settings): ReaderLimits {
  return { ...requestLimits(settings), headBytesMax: settings.responseHeaderBytesMax }
}
