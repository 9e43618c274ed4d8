/** `why`: every reading of an error code: what happened, what the client gets, and where to look. */
import { API_ADVICE, API_METRICS, POOL_FULL_ADVICE, TRANSPORT_ADVICE, WHEN } from '../errors/advice.ts'
import { FAULT, type FaultCode, OTHER_MEANINGS, REPLACED } from '../errors/catalogue.ts'
import { STATUS_CODES } from '../fault/status-codes.ts'
import { READINGS, type Reading } from '../protocol/readings.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type CliArguments, usage } from './arguments.ts'
import { EXIT_FAILED, EXIT_USAGE } from './exit-codes.ts'
import { paint, type Terminal } from './terminal.ts'

const LAST_DOCUMENTED_STATE = 8

/** One way to read a code, as it is told. */
interface Told {
  readonly code: number
  readonly base: number
  /** null for a literal and for codes of APIs. */
  readonly state: number | null
  readonly stateName: string
  readonly side: 'source' | 'target' | ''
  readonly meaning: string
  /** What the client gets. */
  readonly answer: string
  /** Sequence file that words it; '' where there is no answer. */
  readonly sequence: string
  /** File of the program, or what it waits for. */
  readonly raised: string
  readonly look: readonly string[]
  readonly keys: readonly string[]
  readonly metrics: readonly string[]
}

export async function why(
  args: CliArguments,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
): Promise<number> {
  const [first, second, ...more] = args.rest.flatMap(word => word.split('+')).filter(word => word !== '')
  const code = Number(first ?? 0)
  const state = second === undefined ? undefined : stateOf(second)
  if (more.length > 0 || !Number.isInteger(code) || state === -1) {
    complaints.write(usage('why'))
    return EXIT_USAGE
  }
  if (first === undefined) {
    listAll(args.json, output)
    return 0
  }
  const own = state === undefined ? tellCode(code) : tellReading(code, state)
  const found = own.length === 0 && state === undefined ? tellBase(code) : own
  if (found.length === 0) {
    complaints.write(unknownCode(code, state))
    return EXIT_FAILED
  }
  if (args.json) output.write(`${JSON.stringify(asJson(code, found), null, 2)}\n`)
  else show(output, code, found, state !== undefined)
  return 0
}

/** A number or a name of the documented states; -1 when it is neither. */
function stateOf(word: string): number {
  const byName = (STATE_NAMES as readonly string[]).indexOf(word.toUpperCase())
  const state = byName === -1 ? Number(word) : byName
  return Number.isInteger(state) && state <= LAST_DOCUMENTED_STATE ? state : -1
}

function tellCode(code: number): readonly Told[] {
  return [...tellApiCode(code), ...READINGS.filter(reading => reading.code === code).map(tell)]
}

/** A base that is never answered as it is: everything that becomes of it. */
function tellBase(base: number): readonly Told[] {
  return READINGS.filter(reading => reading.base === base).map(tell)
}

/** Of a code that has no states: the code, whatever stands beside it in a log. */
function tellReading(base: number, state: number): readonly Told[] {
  const literal = tellCode(base).filter(told => told.state === null)
  return literal.length > 0 ? literal : READINGS.filter(it => it.base === base && it.state === state).map(tell)
}

function tellApiCode(code: number): readonly Told[] {
  const replaced = REPLACED[code]
  if (replaced !== undefined) {
    const meaning = `Not answered any more (${replaced.because}): in its place stands ${replaced.by}.`
    const [told] = tellApiCode(replaced.by)
    return [{ ...told!, code, base: code, meaning: `${meaning} ${told!.meaning}` }]
  }
  if (!isApiCode(code)) return []
  const { status, message, description, sequence, raisedIn, awaits } = FAULT[code as FaultCode]
  const raised = raisedIn === '' ? `nothing yet: ${awaits}` : raisedIn
  const others = OTHER_MEANINGS.filter(meaning => meaning.code === code).map(meaning => {
    const sequences = meaning.sequences.map(name => `${name}.xml`).join(', ')
    return tellAnswer(code, meaning.status, `${message}: ${meaning.description}`, sequences, meaning.raisedIn)
  })
  return [tellAnswer(code, status, `${message}: ${description}`, `${sequence}.xml`, raised), ...others]
}

function tellAnswer(code: number, status: number, meaning: string, sequence: string, raised: string): Told {
  const responses = `sluice_responses_total{class="${Math.floor(status / 100)}xx",status="${status}"}`
  return {
    code,
    base: code,
    state: null,
    stateName: '',
    side: '',
    meaning: meaning.endsWith('.') ? meaning : `${meaning}.`,
    answer: statusLine(status),
    sequence,
    raised,
    look: API_ADVICE[code] ?? [],
    keys: [],
    metrics: [...(API_METRICS[code] ?? []), responses],
  }
}

/** In the catalogue, and not a base that a state is added to. */
function isApiCode(code: number): boolean {
  return Object.hasOwn(FAULT, code) && !Object.hasOwn(TRANSPORT_ADVICE, code)
}

function tell(reading: Reading): Told {
  const { code, base, state, stateName, side, isPoolFull } = reading
  const advice = isPoolFull ? POOL_FULL_ADVICE : TRANSPORT_ADVICE[base]!
  const row = FAULT[base as FaultCode]
  const inState = state < 0 ? '' : `,state="${state}"`
  return {
    code,
    base,
    state: state < 0 ? null : state,
    stateName,
    side,
    meaning: advice.what.replace('{when}', WHEN[side][state] ?? ''),
    answer: answerTo(reading),
    sequence: /^\d/.test(answerTo(reading)) ? `${row.sequence}.xml` : '',
    raised: row.raisedIn,
    look: advice.look,
    keys: advice.keys,
    metrics: [`sluice_faults_total{side="${side}",base="${base}"${inState}}`, ...advice.metrics],
  }
}

const NOBODY = 'nothing: it has left, or its own side has answered it'
const RESET = 'a reset: part of the response was out, and must not be taken for the whole'
/** What becomes of a client that is the cause itself, by documented state. */
const TO_THE_CULPRIT: Readonly<Record<number, string>> = {
  0: 'nothing: the connection is closed',
  1: '400, 408, 414, 431, 501 or 505, then the connection is closed',
  2: '400 or 408, then the connection is closed',
  3: 'nothing: it has left',
}

function answerTo({ side, base, state, isPoolFull }: Reading): string {
  if (base === 101510) return `${statusLine(FAULT[base].status)}, or a reset where a response had begun`
  const status = FAULT[base as keyof typeof FAULT].status
  if (state < 0) return statusLine(status)
  if (side === 'source') return TO_THE_CULPRIT[state] ?? 'a reset, if it is still there'
  if (isPoolFull) return statusLine(503)
  if (base === 101507 || base === 101509) return NOBODY
  return state > 3 ? RESET : statusLine(status)
}

function statusLine(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd()
}

function asJson(code: number, found: readonly Told[]): unknown {
  return { code, readings: found }
}

// ---- what is printed ------------------------------------------------------------------------------------------------

const SIDES = { source: 'client side', target: 'back end side', '': '' } as const

const TOLD_APART = `Base and state stand apart in the event log
(BASE_ERROR_CODE, INTERNAL_STATE), the access log (error_base, error_state) and the metric sluice_faults_total.`

function show(output: Terminal, code: number, found: readonly Told[], isChosen: boolean): void {
  if (found[0]!.code !== code && !isChosen) {
    output.write(`${paint(output, 'bold', `${code} is a base code.`)} Answers carry it with a state added.\n\n`)
  } else if (found.length > 1) {
    const apart = found.some(({ state }) => state !== null) ? ` ${TOLD_APART}` : ''
    output.write(`${paint(output, 'bold', `${code} can be read in ${found.length} ways.`)}${apart}\n\n`)
  }
  output.write(found.map(told => block(output, told)).join('\n'))
  if (!isChosen && found[0]!.code === code) output.write(asBase(output, code))
}

function block(output: Terminal, told: Told): string {
  const { code, base, state, stateName, side, answer, sequence, raised, look, keys, metrics } = told
  const sum = state === null ? `${code}` : `${code} = ${base} + ${state}`
  const place = state === null ? SIDES[side] : `${stateName}, ${SIDES[side]}`
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['client gets', [answer]],
    ['worded by', sequence === '' ? [] : [sequence]],
    ['raised by', [raised]],
    ['look at', look],
    ['keys', keys],
    ['metrics', metrics],
  ]
  const lines = rows.flatMap(([name, texts]) =>
    texts.map((text, at) => `  ${paint(output, 'dim', (at === 0 ? name : '').padEnd(11))}  ${text}\n`),
  )
  return `${paint(output, 'bold', sum)}${place === '' ? '' : `  ${place}`}\n  ${told.meaning}\n${lines.join('')}`
}

/** A number from the log's BASE_ERROR_CODE means something else than the same number from an answer. */
function asBase(output: Terminal, code: number): string {
  const sums = READINGS.filter(reading => reading.base === code && reading.code !== code && reading.state > 0)
  if (sums.length === 0) return ''
  const listed = sums.map(sum => `${sum.code} (${sum.state} ${sum.stateName})`).join(', ')
  return paint(output, 'dim', `\nAs a base code ${code} becomes ${listed}: sluice why ${code} STATE\n`)
}

function listAll(isJson: boolean, output: Terminal): void {
  const answered = Object.keys(FAULT).map(Number).filter(isApiCode)
  const apiCodes = [...answered, ...Object.keys(REPLACED).map(Number)].sort((one, other) => one - other)
  const all = [...apiCodes.flatMap(tellApiCode), ...READINGS.map(tell)]
  if (isJson) {
    output.write(`${JSON.stringify(all, null, 2)}\n`)
    return
  }
  let last = 0
  for (const { code, base, state, stateName, side, meaning } of all) {
    const sum = state === null ? '' : `${base} + ${state}`
    const shown = code === last ? '' : String(code)
    last = code
    const place = state === null ? meaning : `${SIDES[side].padEnd(13)}  ${stateName}`
    output.write(`${paint(output, 'bold', shown.padEnd(6))}  ${paint(output, 'dim', sum.padEnd(10))}  ${place}\n`)
  }
}

function unknownCode(code: number, state: number | undefined): string {
  if (state !== undefined) {
    const states = READINGS.filter(reading => reading.base === code && reading.state >= 0)
    if (states.length === 0) return `no failure has the base code ${code}; sluice why lists all\n`
    const listed = states.map(reading => `${reading.state} ${reading.stateName}`).join(', ')
    return `${code} does not happen in state ${state}; it does in ${listed}\n`
  }
  const known = [...Object.keys({ ...FAULT, ...REPLACED }).map(Number), ...READINGS.map(reading => reading.code)]
  const nearest = known.reduce((one, other) => (Math.abs(other - code) < Math.abs(one - code) ? other : one))
  return `there is no code ${code}; the nearest is ${nearest}. sluice why lists all\n`
}
