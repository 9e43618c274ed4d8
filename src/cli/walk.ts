/** `walk`: sends one request through the running gateway and prints its steps on both connections. */
import { randomBytes } from 'node:crypto'
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { type RequestOptions, request as requestHttps, Agent as TlsAgent } from 'node:https'
import { REASON_PHRASES } from '../faults/reason-phrases.ts'
import type { Trace, TraceStep } from '../observe/exchange-trace.ts'
import type { OpenListener, WalkArmed, WalkReport } from '../primary/socket-commands.ts'
import { type CliArguments, type CommandOptions, EXIT_FAILED, EXIT_USAGE, UsageError } from './arguments.ts'
import { ControlClient, ControlError, orFail } from './control-client.ts'
import { usage } from './help.ts'
import { paint, type Terminal } from './terminal.ts'

interface WalkRequest {
  readonly method: string
  readonly path: string
  /** Host field; '' for host and port of the listener. */
  readonly host: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | null
}

/** The request and the listener that the command line asks for. */
interface WalkTarget extends WalkRequest {
  /** '' for any listener. */
  readonly scheme: string
  /** 0 for any port. */
  readonly port: number
}

/** The response as the client received it. */
interface WalkResponse {
  /** 0 without a response. */
  readonly status: number
  readonly reason: string
  readonly bytes: number
  /** Milliseconds from the call, with connecting, to the last byte or the failure. */
  readonly ms: number
  /** '' for a complete response. */
  readonly failure: string
}

/** Throws UsageError. */
export async function walk(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [url, ...more] = args.rest
  if (url === undefined || more.length > 0) {
    errorOutput.write(usage('walk'))
    return EXIT_USAGE
  }
  const target = readTarget(url, options)
  return orFail(errorOutput, async () => {
    const control = await ControlClient.connect(args.dataDir)
    try {
      return await traceRequest(control, target, args.json, output, errorOutput)
    } finally {
      control.close()
    }
  })
}

/** Throws UsageError. */
function readTarget(url: string, { method, headers, body }: CommandOptions): WalkTarget {
  const request = { method: method || (body === null ? 'GET' : 'POST'), headers: headers.map(readField), body }
  if (url.startsWith('/')) return { scheme: '', host: '', port: 0, path: url, ...request }
  const match = /^(https?):\/\/([^/?#]*)([^#]*)/.exec(url)
  if (match === null) throw new UsageError(`${url} is neither a path nor an http or https URL`)
  const [, scheme, host, path] = match
  const port = Number(/:(\d+)$/.exec(host!)?.[1] ?? 0)
  return { scheme: scheme!, host: host!, port, path: path!.startsWith('/') ? path! : `/${path}`, ...request }
}

function readField(text: string): readonly [string, string] {
  const colon = text.indexOf(':')
  if (colon < 1) throw new UsageError(`-H takes 'Name: value', not ${text}`)
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()]
}

async function traceRequest(
  control: ControlClient,
  target: WalkTarget,
  isJson: boolean,
  output: Terminal,
  errorOutput: Terminal,
): Promise<number> {
  const correlationId = randomBytes(16).toString('hex')
  const { listeners, correlationField } = await control.send<WalkArmed>({ command: 'walk', correlationId })
  const listener = selectListener(listeners, target)
  if (listener === undefined) {
    const offered = listeners.map(({ scheme, port }) => `${scheme} on port ${port}`).join(', ')
    throw new ControlError(`the gateway has no such listener; it listens with ${offered}`)
  }
  // Replaces a correlation id of the operator: the reactors know the request by this one.
  const others = target.headers.filter(([name]) => name.toLowerCase() !== correlationField.toLowerCase())
  const headers = [...others, [correlationField, correlationId] as const]
  const abort = new AbortController()
  const sending = sendRequest(listener, { ...target, headers }, abort.signal)
  const { reactor, trace } = await control.receive<WalkReport>()
  // The reactors have stopped watching: a response that is still missing is not waited for.
  if (trace === null || !trace.isComplete) abort.abort()
  const response = await sending
  const { method, path } = target
  if (isJson) output.write(`${JSON.stringify({ method, path, listener, reactor, response, trace }, null, 2)}\n`)
  else if (trace !== null) print(output, target, listener, reactor, response, trace)
  if (trace === null)
    errorOutput.write(`no reactor received the request: ${response.failure || 'another server has responded'}\n`)
  return trace !== null && response.failure === '' ? 0 : EXIT_FAILED
}

/** The listener with scheme and port. If no port fits, any with the scheme: the URL may be that of a load balancer. */
function selectListener(listeners: readonly OpenListener[], { scheme, port }: WalkTarget): OpenListener | undefined {
  const suitable = listeners.filter(listener => scheme === '' || listener.scheme === scheme)
  return (
    suitable.find(listener => listener.port === port) ??
    suitable.find(listener => listener.scheme === 'http') ??
    suitable[0]
  )
}

// ---- the request ----------------------------------------------------------------------------------------------------

/** Sends the request as any client would. Throws UsageError for one that cannot be sent. `signal` aborts it. */
function sendRequest(listener: OpenListener, request: WalkRequest, signal: AbortSignal): Promise<WalkResponse> {
  const startMs = performance.now()
  const { promise, resolve } = Promise.withResolvers<WalkResponse>()
  const sent = openRequest(listener, request, signal)
  const ended = (failure: string, response: IncomingMessage | null, bytes: number): void => {
    sent.destroy()
    const { statusCode = 0, statusMessage = '' } = response ?? {}
    resolve({ status: statusCode, reason: statusMessage, bytes, ms: performance.now() - startMs, failure })
  }
  sent.on('error', error => ended(error.message, null, 0))
  sent.on('response', response => {
    let bytes = 0
    response.on('data', (piece: Buffer) => {
      bytes += piece.length
    })
    response.on('end', () => ended('', response, bytes))
    response.on('error', error => ended(error.message, response, bytes))
  })
  sent.end(request.body ?? undefined)
  return promise
}

function openRequest(listener: OpenListener, request: WalkRequest, signal: AbortSignal): ClientRequest {
  const { method, path, headers, body } = request
  const host = request.host === '' ? listenerAuthority(listener) : request.host
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const defaults: (readonly [string, string])[] = [
    ['Host', host],
    ['User-Agent', 'sluice walk'],
    ['Accept', '*/*'],
  ]
  if (body !== null) defaults.push(['Content-Length', String(Buffer.byteLength(body))])
  const fields = [...defaults.filter(([name]) => !given.has(name.toLowerCase())), ...headers].flat()
  const address = { host: listenerAddress(listener.host), port: listener.port }
  const common = { ...address, path, method, headers: fields, signal }
  try {
    if (listener.scheme === 'http') return requestHttp({ ...common, agent: new Agent({ keepAlive: true }) })
    return openSecured(common, host)
  } catch (error) {
    // Node throws for method, path or fields with invalid characters.
    if (!(error instanceof TypeError)) throw error
    throw new UsageError(error.message)
  }
}

function openSecured(common: RequestOptions, host: string): ClientRequest {
  const name = host.replace(/:\d+$/, '')
  const servername = /^[\d.]+$|^\[/.test(name) ? '' : name
  // The certificate is not verified: the gateway on this machine is called by address, not by its name.
  const agent = new TlsAgent({ keepAlive: true, rejectUnauthorized: false })
  return requestHttps({ ...common, servername, agent })
}

/** Host and port that reach the listener from its own machine. */
function listenerAuthority({ host, port }: OpenListener): string {
  const address = listenerAddress(host)
  return `${address.includes(':') ? `[${address}]` : address}:${port}`
}

function listenerAddress(host: string): string {
  return host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
}

// ---- output ---------------------------------------------------------------------------------------------------------

const COLUMN_WIDTH = 46

function print(
  output: Terminal,
  { method, path }: WalkTarget,
  listener: OpenListener,
  reactor: number,
  response: WalkResponse,
  trace: Trace,
): void {
  const { status, requestBodyBytes, responseBodyBytes, source, target, api } = trace
  const title = paint(output, 'bold', `${method} ${path}`)
  output.write(`${title}  ${listener.scheme}://${listenerAuthority(listener)}, reactor ${reactor}\n\n`)
  output.write(paint(output, 'dim', `${'µs'.padStart(9)}  ${source.padEnd(COLUMN_WIDTH)}  ${target}\n`))
  for (const step of trace.steps) output.write(stepLine(output, step))
  if (trace.dropped > 0) output.write(`           and ${trace.dropped} more steps\n`)
  const statusLine = `${status} ${REASON_PHRASES[status] ?? response.reason}`.trimEnd()
  const outcome = status === 0 ? 'no response' : statusLine
  const color = status >= 200 && status < 400 ? 'green' : 'red'
  const sizes = `${requestBodyBytes} bytes to the gateway, ${responseBodyBytes} back`
  const apiText = api === '' ? 'no API' : `API ${api}`
  output.write(
    `\n${paint(output, color, outcome)}  ${apiText}, ${sizes}, ${response.ms.toFixed(1)} ms for the client\n`,
  )
  if (!trace.isComplete) output.write('incomplete: the steps within 10 seconds\n')
  if (response.failure !== '') output.write(`the client failed: ${response.failure}\n`)
  if (trace.errorBase !== 0) output.write(`explained by: sluice why ${trace.errorBase} ${trace.errorState}\n`)
}

function stepLine(output: Terminal, { us, where, what, detail, bytes }: TraceStep): string {
  const time = paint(output, 'dim', String(us).padStart(9))
  const size = bytes === 0 ? '' : `  +${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`
  if (where === 'gateway') return `${time}    ${paint(output, 'yellow', '·')} ${what}  ${detail}${size}\n`
  const text = `${what} → ${detail}${size}`
  return `${time}  ${where === 'source' ? text : ' '.repeat(COLUMN_WIDTH + 2) + text}\n`
}
