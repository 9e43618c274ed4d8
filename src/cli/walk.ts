/** `walk`: one request through the running gateway, and what became of it, step by step. */
import { randomBytes } from 'node:crypto'
import type { OpenListener, WalkAnswer, WalkArmed } from '../primary/control-commands.ts'
import { STATUS_CODES } from '../fault/status-codes.ts'
import type { Step, Trace } from '../observe/exchange-trace.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { CannotAsk, Control } from './ask.ts'
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import { paint, type Terminal } from './terminal.ts'
import { type Answer, reachable, sendRequest } from './walk-request.ts'

/** What is to be sent, as it was asked for. */
interface Wanted {
  /** '' where only a path was given: any listener will do. */
  readonly scheme: string
  /** Authority for the Host field; '' takes that of the listener. */
  readonly host: string
  readonly port: number
  readonly path: string
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | null
}

export async function walk(
  args: CliArguments,
  options: CommandOptions,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  const [url, ...more] = args.rest
  if (url === undefined || more.length > 0) {
    complaints.write(usage('walk'))
    return EXIT_USAGE
  }
  const wanted = wantedOf(url, options)
  try {
    const control = await Control.connect(args.dataDir)
    try {
      return await walkThrough(control, wanted, args.json, output, complaints)
    } finally {
      control.close()
    }
  } catch (error) {
    if (!(error instanceof CannotAsk)) throw error
    complaints.write(`${error.message}\n`)
    return EXIT_FAILED
  }
}

/** Throws UsageError. */
function wantedOf(url: string, { method, headers, body }: CommandOptions): Wanted {
  const request = { method: method || (body === null ? 'GET' : 'POST'), headers: headers.map(fieldOf), body }
  if (url.startsWith('/')) return { scheme: '', host: '', port: 0, path: url, ...request }
  const match = /^(https?):\/\/([^/?#]*)([^#]*)/.exec(url)
  if (match === null) throw new UsageError(`${url} is neither a path nor an http or https URL`)
  const [, scheme, host, target] = match
  const port = Number(/:(\d+)$/.exec(host!)?.[1] ?? 0)
  return { scheme: scheme!, host: host!, port, path: target!.startsWith('/') ? target! : `/${target}`, ...request }
}

function fieldOf(text: string): readonly [string, string] {
  const colon = text.indexOf(':')
  if (colon < 1) throw new UsageError(`-H takes 'Name: value', not ${text}`)
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()]
}

async function walkThrough(
  control: Control,
  wanted: Wanted,
  isJson: boolean,
  output: Terminal,
  complaints: Terminal,
): Promise<number> {
  const correlationId = randomBytes(16).toString('hex')
  const { listeners, correlationField } = await control.ask<WalkArmed>({ command: 'walk', correlationId })
  const listener = choose(listeners, wanted)
  if (listener === undefined) {
    const offered = listeners.map(({ scheme, port }) => `${scheme} on port ${port}`).join(', ')
    throw new CannotAsk(`the gateway does not listen there; it does on ${offered}`)
  }
  // The id of this walk, whatever else was asked for: it is what the exchange is known by.
  const others = wanted.headers.filter(([name]) => name.toLowerCase() !== correlationField.toLowerCase())
  const headers = [...others, [correlationField, correlationId] as const]
  const leave = new AbortController()
  const sending = sendRequest(listener, { ...wanted, headers }, leave.signal)
  const { reactor, trace } = await control.next<WalkAnswer>()
  // What has not come by now is not waited for.
  if (trace === null || !trace.isComplete) leave.abort()
  const answer = await sending
  if (isJson)
    output.write(
      `${JSON.stringify({ method: wanted.method, path: wanted.path, listener, reactor, answer, trace }, null, 2)}\n`,
    )
  else if (trace !== null) show(output, wanted, listener, reactor, answer, trace)
  if (trace === null)
    complaints.write(`no reactor has seen the request: ${answer.failure || 'the answer is not from it'}\n`)
  return trace !== null && answer.failure === '' ? 0 : EXIT_FAILED
}

/** The one with that scheme and port; a URL of another port means the gateway behind it, so the scheme decides. */
function choose(listeners: readonly OpenListener[], { scheme, port }: Wanted): OpenListener | undefined {
  const fitting = listeners.filter(listener => scheme === '' || listener.scheme === scheme)
  return fitting.find(listener => listener.port === port) ?? fitting.find(it => it.scheme === 'http') ?? fitting[0]
}

// ---- what is printed ------------------------------------------------------------------------------------------------

const LANE = 46

function show(
  output: Terminal,
  { method, path }: Wanted,
  listener: OpenListener,
  reactor: number,
  answer: Answer,
  trace: Trace,
): void {
  const { status, requestBodyBytes, responseBodyBytes, source, target, api } = trace
  const bold = (text: string): string => paint(output, 'bold', text)
  output.write(`${bold(`${method} ${path}`)}  ${listener.scheme}://${reachable(listener)}, reactor ${reactor}\n\n`)
  output.write(paint(output, 'dim', `${'µs'.padStart(9)}  ${source.padEnd(LANE)}  ${target}\n`))
  for (const step of trace.steps) output.write(lineOf(output, step))
  if (trace.dropped > 0) output.write(`           and ${trace.dropped} more steps\n`)
  const outcome = status === 0 ? 'no answer' : `${status} ${STATUS_CODES[status] ?? answer.reason}`.trimEnd()
  const color = status >= 200 && status < 400 ? 'green' : 'red'
  const sizes = `${requestBodyBytes} bytes to the gateway, ${responseBodyBytes} back`
  const where = api === '' ? 'no API' : `API ${api}`
  output.write(`\n${paint(output, color, outcome)}  ${where}, ${sizes}, ${answer.ms.toFixed(1)} ms for the client\n`)
  if (!trace.isComplete) output.write(`not over after 10 seconds: these are the steps so far\n`)
  if (answer.failure !== '') output.write(`the client saw: ${answer.failure}\n`)
  if (trace.errorBase !== 0) output.write(`more about it: sluice why ${trace.errorBase} ${trace.errorState}\n`)
}

function lineOf(output: Terminal, { us, where, what, detail, bytes }: Step): string {
  const time = paint(output, 'dim', String(us).padStart(9))
  const moved = bytes === 0 ? '' : `  +${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`
  if (where === 'gateway') return `${time}    ${paint(output, 'yellow', '·')} ${what}  ${detail}${moved}\n`
  const text = `${what} → ${detail}${moved}`
  return `${time}  ${where === 'source' ? text : ' '.repeat(LANE + 2) + text}\n`
}
