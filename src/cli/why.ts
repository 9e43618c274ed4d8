/** `why`: explains an error code: each meaning, the response to the client, and what to check. */
import { API_ADVICE, API_METRICS, STATE_PHRASES, TRANSPORT_ADVICE } from '../faults/advice.ts'
import { FAULT, type FaultCode, REPLACED_CODES, SHARED_CODES } from '../faults/error-codes.ts'
import { REASON_PHRASES } from '../faults/reason-phrases.ts'
import { CODE_MEANINGS, type CodeMeaning } from '../protocol/code-meanings.ts'
import { STATE_NAMES } from '../protocol/states.ts'
import { type CliArguments, EXIT_FAILED, EXIT_USAGE } from './arguments.ts'
import { usage } from './help.ts'
import { paint, type Terminal } from './terminal.ts'

const LAST_DOCUMENTED_STATE = 8
/** Statuses of refused requests whose faults have the code 400. */
const STATUSES_OF_400 = [414, 417, 421, 426, 431, 501, 505]

/** One meaning of a code, as `--json` prints it. */
interface Explanation {
  readonly code: number
  readonly base: number
  /** Null for a code without states. */
  readonly state: number | null
  readonly stateName: string
  readonly side: 'source' | 'target' | ''
  readonly meaning: string
  /** The response that the client gets. */
  readonly response: string
  /** Message and description of the fault, as the default sequences send them; '' without a response of this code. */
  readonly text: string
  /** Sequence file of the response; '' without a response. */
  readonly sequence: string
  /** Source file that raises the code, or the feature that will. */
  readonly raisedIn: string
  readonly checks: readonly string[]
  readonly keys: readonly string[]
  readonly metrics: readonly string[]
}

export async function why(
  args: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [first, second, ...more] = args.rest.flatMap(word => word.split('+')).filter(word => word !== '')
  const code = Number(first ?? 0)
  const state = second === undefined ? undefined : readState(second)
  if (more.length > 0 || !Number.isInteger(code) || state === -1) {
    errorOutput.write(usage('why'))
    return EXIT_USAGE
  }
  if (first === undefined) {
    printAll(args.json, output)
    return 0
  }
  const own = state === undefined ? explainCode(code) : explainInState(code, state)
  const meanings = own.length === 0 && state === undefined ? explainBase(code) : own
  if (meanings.length === 0) {
    errorOutput.write(unknownCode(code, state))
    return EXIT_FAILED
  }
  if (args.json) output.write(`${JSON.stringify({ code, meanings }, null, 2)}\n`)
  else print(output, code, meanings, state !== undefined)
  return 0
}

/** Reads the number or the name of a documented state; -1 for neither. */
function readState(word: string): number {
  const byName = (STATE_NAMES as readonly string[]).indexOf(word.toUpperCase())
  const state = byName === -1 ? Number(word) : byName
  return Number.isInteger(state) && state <= LAST_DOCUMENTED_STATE ? state : -1
}

// ---- meanings -------------------------------------------------------------------------------------------------------

function explainCode(code: number): readonly Explanation[] {
  const meanings = CODE_MEANINGS.filter(meaning => meaning.code === code)
  return [...explainApiCode(code), ...meanings.map(explainTransportCode)]
}

/** For a base that is no code itself: all codes with this base. */
function explainBase(base: number): readonly Explanation[] {
  return CODE_MEANINGS.filter(meaning => meaning.base === base).map(explainTransportCode)
}

/** For a code without states, any state: logs show a state with every code. */
function explainInState(base: number, state: number): readonly Explanation[] {
  const withoutStates = explainCode(base).filter(meaning => meaning.state === null)
  if (withoutStates.length > 0) return withoutStates
  return CODE_MEANINGS.filter(meaning => meaning.base === base && meaning.state === state).map(explainTransportCode)
}

function explainApiCode(code: number): readonly Explanation[] {
  const replaced = REPLACED_CODES[code]
  if (replaced !== undefined) {
    const [successor] = explainApiCode(replaced.by)
    const replacement = `No longer used (${replaced.because}); ${replaced.by} replaces it.`
    return [{ ...successor!, code, base: code, meaning: `${replacement} ${successor!.meaning}` }]
  }
  if (!isApiCode(code)) return []
  const { status, message, description, sequence, raisedIn } = FAULT[code as FaultCode]
  const others = SHARED_CODES.filter(meaning => meaning.code === code).map(meaning => {
    const sequences = meaning.sequences.map(name => `${name}.xml`).join(', ')
    return apiExplanation(code, meaning.status, `${message}: ${meaning.description}`, sequences, meaning.raisedIn)
  })
  return [apiExplanation(code, status, `${message}: ${description}`, `${sequence}.xml`, raisedIn), ...others]
}

function apiExplanation(
  code: number,
  status: number,
  meaning: string,
  sequence: string,
  raisedIn: string,
): Explanation {
  const responses = `sluice_responses_total{class="${Math.floor(status / 100)}xx",status="${status}"}`
  return {
    code,
    base: code,
    state: null,
    stateName: '',
    side: '',
    meaning: meaning.endsWith('.') ? meaning : `${meaning}.`,
    response: statusText(status),
    text: meaning,
    sequence,
    raisedIn,
    checks: API_ADVICE[code] ?? [],
    keys: [],
    metrics: [...(API_METRICS[code] ?? []), responses],
  }
}

/** True for a code of the catalogue that is no base code of the transport. */
function isApiCode(code: number): boolean {
  return Object.hasOwn(FAULT, code) && !Object.hasOwn(TRANSPORT_ADVICE, code)
}

function explainTransportCode(meaning: CodeMeaning): Explanation {
  const { code, base, state, stateName, side } = meaning
  const advice = TRANSPORT_ADVICE[base]!
  const { status, message, description, sequence, raisedIn } = FAULT[base as FaultCode]
  const response = responseTo(meaning)
  const stateLabel = state < 0 ? '' : `,state="${state}"`
  return {
    code,
    base,
    state: state < 0 ? null : state,
    stateName,
    side,
    meaning: advice.summary.replace('{when}', STATE_PHRASES[side][state] ?? ''),
    response,
    text: response.startsWith(statusText(status)) ? `${message}: ${description}` : '',
    sequence: /^\d/.test(response) ? `${sequence}.xml` : '',
    raisedIn,
    checks: advice.checks,
    keys: advice.keys,
    metrics: [`sluice_faults_total{side="${side}",base="${base}"${stateLabel}}`, ...advice.metrics],
  }
}

const NO_CLIENT = 'nothing: it has disconnected, or has a response from the client side'
const RESET = 'a reset: part of the response was sent, and must not look complete'
/** Response to a client that is the cause itself, by documented state. */
const CLIENT_ERRORS: Readonly<Record<number, string>> = {
  0: 'nothing: the connection is closed',
  1: '400, 408, 414, 431, 501 or 505, then the connection is closed',
  2: '400 or 408, then the connection is closed',
  3: 'nothing: it has disconnected',
}

function responseTo({ side, base, state }: CodeMeaning): string {
  const { status } = FAULT[base as FaultCode]
  if (base === 101510 || base === 101601) return `${statusText(status)}, or a reset if the response has begun`
  if (state < 0) return statusText(status)
  if (side === 'source') return CLIENT_ERRORS[state] ?? 'a reset, if it is still connected'
  if (base === 101507 || base === 101509) return NO_CLIENT
  return state > 3 ? RESET : statusText(status)
}

function statusText(status: number): string {
  return `${status} ${REASON_PHRASES[status] ?? ''}`.trimEnd()
}

// ---- output ---------------------------------------------------------------------------------------------------------

const SIDES = { source: 'client side', target: 'backend side', '': '' } as const

const BASE_AND_STATE = `The event log
(BASE_ERROR_CODE, INTERNAL_STATE), the access log (error_base, error_state) and the metric sluice_faults_total show base
and state separately.`

function print(output: Terminal, code: number, meanings: readonly Explanation[], isStateGiven: boolean): void {
  const isCode = meanings[0]!.code === code
  if (!isCode && !isStateGiven) {
    output.write(`${paint(output, 'bold', `${code} is a base code.`)} Responses carry it with a state added.\n\n`)
  } else if (meanings.length > 1) {
    const hasStates = meanings.some(({ state }) => state !== null)
    const note = hasStates ? ` ${BASE_AND_STATE}` : ''
    output.write(`${paint(output, 'bold', `${code} has ${meanings.length} meanings.`)}${note}\n\n`)
  }
  output.write(meanings.map(meaning => blockOf(output, meaning)).join('\n'))
  if (!isStateGiven && isCode) output.write(baseNote(output, code))
}

function blockOf(output: Terminal, explanation: Explanation): string {
  const { code, base, state, stateName, side, meaning, response, text, sequence } = explanation
  const sum = state === null ? `${code}` : `${code} = ${base} + ${state}`
  const origin = state === null ? SIDES[side] : `${stateName}, ${SIDES[side]}`
  const rows: readonly (readonly [label: string, texts: readonly string[]])[] = [
    // An API code has its text as its meaning.
    ['client gets', side === '' || text === '' ? [response] : [response, text]],
    ['sequence', sequence === '' ? [] : [sequence]],
    ['raised in', [explanation.raisedIn]],
    ['check', explanation.checks],
    ['keys', explanation.keys],
    ['metrics', explanation.metrics],
  ]
  const lines = rows.flatMap(([label, texts]) =>
    texts.map((text, at) => `  ${paint(output, 'dim', (at === 0 ? label : '').padEnd(11))}  ${text}\n`),
  )
  return `${paint(output, 'bold', sum)}${origin === '' ? '' : `  ${origin}`}\n  ${meaning}\n${lines.join('')}`
}

/** For a code that is a base code too: BASE_ERROR_CODE of the event log may mean the base. */
function baseNote(output: Terminal, code: number): string {
  const sums = CODE_MEANINGS.filter(meaning => meaning.base === code && meaning.code !== code && meaning.state > 0)
  if (sums.length === 0) return ''
  const listed = sums.map(sum => `${sum.code} (${sum.state} ${sum.stateName})`).join(', ')
  return paint(output, 'dim', `\nAs a base code ${code} leads to ${listed}: sluice why ${code} STATE\n`)
}

function printAll(isJson: boolean, output: Terminal): void {
  const apiCodes = [...Object.keys(FAULT).map(Number).filter(isApiCode), ...Object.keys(REPLACED_CODES).map(Number)]
  const sorted = apiCodes.sort((one, other) => one - other)
  const all = [...sorted.flatMap(explainApiCode), ...CODE_MEANINGS.map(explainTransportCode)]
  if (isJson) {
    output.write(`${JSON.stringify(all, null, 2)}\n`)
    return
  }
  let last = 0
  for (const { code, base, state, stateName, side, meaning } of all) {
    const sum = state === null ? '' : `${base} + ${state}`
    const codeText = code === last ? '' : String(code)
    last = code
    const text = state === null ? meaning : `${SIDES[side].padEnd(12)}  ${stateName}`
    output.write(`${paint(output, 'bold', codeText.padEnd(6))}  ${paint(output, 'dim', sum.padEnd(10))}  ${text}\n`)
  }
}

function unknownCode(code: number, state: number | undefined): string {
  if (state !== undefined) {
    const states = CODE_MEANINGS.filter(meaning => meaning.base === code && meaning.state >= 0)
    if (states.length === 0) return `no failure has the base code ${code}; sluice why lists all\n`
    const listed = states.map(meaning => `${meaning.state} ${meaning.stateName}`).join(', ')
    return `${code} does not occur in state ${state}; it occurs in ${listed}\n`
  }
  if (Object.hasOwn(REASON_PHRASES, code)) return statusNote(code)
  const apiCodes = Object.keys({ ...FAULT, ...REPLACED_CODES }).map(Number)
  const known = [...apiCodes, ...CODE_MEANINGS.map(meaning => meaning.code)]
  const nearest = known.reduce((one, other) => (Math.abs(other - code) < Math.abs(one - code) ? other : one))
  return `there is no code ${code}; the nearest is ${nearest}. sluice why lists all\n`
}

/** For an HTTP status that is no code. */
function statusNote(status: number): string {
  const ofTable = Object.entries(FAULT).flatMap(([code, row]) => (row.status === status ? [Number(code)] : []))
  const codes = STATUSES_OF_400.includes(status) ? [400, ...ofTable] : ofTable
  const note = `${statusText(status)} is an HTTP status, not a code`
  if (codes.length === 0) return `${note}, and no fault has it\n`
  return `${note}; faults with it have the code ${codes.join(' or ')}: sluice why ${codes[0]}\n`
}
