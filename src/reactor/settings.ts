/** Settings of connections, made from the sections of both transports, and the sizes and limits that depend on them. */
import type { Configuration } from '../config/catalogue.ts'
import type { LivePlan } from '../plan/reactor-plan.ts'
import { CALLER_LINES_MAX } from '../proxy/exchange/caller.ts'
import { EDIT_BYTES_MAX } from '../proxy/exchange/head-edit.ts'
import type { Settings } from '../proxy/exchange/connection-context.ts'
import { HeadPool } from '../http1/head.ts'
import type { ReaderLimits } from '../http1/message-reader.ts'
import { encoded } from '../http1/writer.ts'

type Plain = Configuration['transport.passthru_http']
type Transport = Plain | Configuration['transport.passthru_https']

/** `transport`: the section of the connections. `plain`: the section with the settings of both transports. */
export function settingsOf(transport: Transport, plain: Plain, responseTimeoutMs: number): Settings {
  const preserved = new Set(transport['http.headers.preserve'].map(name => name.toLowerCase()))
  return {
    socketTimeoutMs: transport['http.socket.timeout'],
    connectTimeoutMs: transport['http.connection.timeout'],
    responseTimeoutMs,
    headerReadMs: transport['header.read_timeout'],
    bodyReadMs: transport['body.read_timeout'],
    responseRateMin: transport['response.min_rate'],
    keepAliveMs: transport['keepalive.timeout'],
    targetKeepAliveMs: transport['sender.keepalive.timeout'],
    tunnelIdleMs: transport['tunnel.idle_timeout'],
    headerBytesMax: transport['header.max_bytes'],
    headerCountMax: transport['header.max_count'],
    targetBytesMax: transport['target.max_bytes'],
    bodyBytesMax: transport['body.max_bytes'],
    pipelineBytesMax: transport['pipeline.max_bytes'],
    extensionBytesMax: transport['chunk.max_extension_bytes'],
    trailerBytesMax: transport['trailer.max_bytes'],
    responseHeaderBytesMax: transport['response.header.max_bytes'],
    connectionsPerHostMax: transport['http.max.connection.per.host.port'],
    suspendFailures: plain['suspend.failures'],
    suspendClients: plain['suspend.clients'],
    suspendWindowMs: plain['suspend.window'],
    abortOnHalfClose: transport.abort_on_half_close,
    closesTargets: transport.disable_connection_keepalive,
    preservesServer: transport.preserve_http_server_name || preserved.has('server'),
    preservesUserAgent: transport['http.user.agent.preserve'] || preserved.has('user-agent'),
    preservesHost: preserved.has('host'),
    correlationField: plain['correlation.header'],
    correlationStart: encoded(`${plain['correlation.header']}: `),
    forwardedFields: plain['forwarded.headers'],
  }
}

/**
 * Changes the settings in the object that every connection reads. Limits that memory was sized by, and the correlation
 * field, keep the values of the start.
 */
export function updateSettings(
  settings: Settings,
  transport: Transport,
  plain: Plain,
  responseTimeoutMs: number,
): void {
  const { headerBytesMax, headerCountMax, responseHeaderBytesMax, trailerBytesMax } = settings
  const { correlationField, correlationStart } = settings
  Object.assign(settings, settingsOf(transport, plain, responseTimeoutMs), {
    ...{ headerBytesMax, headerCountMax, responseHeaderBytesMax, trailerBytesMax },
    ...{ correlationField, correlationStart },
  })
}

/** Room for additions to a head: path of the endpoint, Host, forwarding fields; each of them has a limit (D24). */
const HEAD_EXTRA_BYTES = 8192

/** Bytes of the longest head that is sent, whatever transport it came over. */
export function composerBytes(...transports: readonly Settings[]): number {
  // The shortest field line has four bytes and gets one more, a space.
  const longest = transports.flatMap(it => [it.headerBytesMax, it.responseHeaderBytesMax, it.trailerBytesMax * 1.25])
  return Math.max(...longest) + HEAD_EXTRA_BYTES + CALLER_LINES_MAX + EDIT_BYTES_MAX
}

/** Limits of client connections. */
export function requestLimits(settings: Settings): ReaderLimits {
  const { headerBytesMax, targetBytesMax, extensionBytesMax, trailerBytesMax } = settings
  return { headBytesMax: headerBytesMax, targetBytesMax, extensionBytesMax, trailerBytesMax }
}

/** Limits of backend connections. */
export function responseLimits(settings: Settings): ReaderLimits {
  return { ...requestLimits(settings), headBytesMax: settings.responseHeaderBytesMax }
}

/** Heads and limits of connections with these settings. */
export function sizedBy(settings: Settings) {
  const { headerCountMax } = settings
  return {
    requestHeads: new HeadPool(headerCountMax),
    responseHeads: new HeadPool(headerCountMax),
    trailerHeads: new HeadPool(headerCountMax),
    requestLimits: requestLimits(settings),
    responseLimits: responseLimits(settings),
  }
}

/** Largest number of client connections by scheme of the listener. */
export function clientLimits({ http, https }: Pick<LivePlan, 'http' | 'https'>) {
  return { http: http.max_open_connections, https: https.max_open_connections }
}

/** The settings behind a client's trust and forwarding fields. */
export function forwardingKey({ trusted_proxies, 'forwarded.headers': form }: LivePlan['http']): string {
  return `${form} ${trusted_proxies}`
}

/** For composed heads; renewed each second. */
export function dateLine(): string {
  return `Date: ${new Date().toUTCString()}\r\n`
}
