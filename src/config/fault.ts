/** What is wrong with a configuration: where, with which key, what was given, what was expected, and what to do. */

export interface Fault {
  /** `conf/deployment.toml:12`, or `--set`. */
  readonly where: string
  readonly key: string
  /** As the operator wrote it; '(set)' for a secret, '' where nothing was given. */
  readonly given: string
  readonly expected: string
  readonly remedy: string
}

export function describe(fault: Fault): string {
  const named = [shortened(fault.key, KEY_SHOWN), fault.given].filter(part => part !== '').join(' = ')
  const said = [fault.where, named, fault.expected].filter(part => part !== '').join(': ')
  return shortened(printable(fault.remedy === '' ? said : `${said} (${fault.remedy})`), LINE_SHOWN)
}

/** What it says but for the line and for what stands beside it: the same again is no news. */
export function substanceOf({ where, key, given, expected }: Fault): string {
  return JSON.stringify([where.replace(/(?::\d+){1,2}$/, ''), key, given, expected])
}

/** Names in a file may be of any length. */
const KEY_SHOWN = 200
/** Of a line in all: a chain of references with its files fits. */
const LINE_SHOWN = 4000

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...` : text
}

/** In one line, and nothing that a terminal would obey: names of keys and files may hold anything. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, character => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Every fault of a configuration, never only the first. */
export class ConfigurationFaults extends Error {
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map(describe).join('\n'))
    this.name = 'ConfigurationFaults'
    this.faults = faults
  }
}

/** As JSON takes it: no whole numbers beyond 2^53. */
function plain(_: string, value: unknown): unknown {
  if (typeof value === 'string') return masked(value)
  return typeof value === 'bigint' ? Number(value) : value
}

const SHOWN_LENGTH = 60

/**
 * Credentials within a URL: in front of its host, and as a parameter as database drivers take it. A password may hold
 * any character, so all up to the last `@` is one.
 */
const CREDENTIALS = /(:\/\/)\S+(?=@)|\b(password|passwd|pwd|secret|token)=[^&;,\s]+/gi

/** A text without the credentials in its URLs. */
export function masked(text: string): string {
  return text.replace(CREDENTIALS, (_, host?: string, name?: string) => `${host ?? `${name}=`}(set)`)
}

/** As TOML writes it, without quotes. */
function bare(value: number | Date): string {
  return value instanceof Date ? value.toISOString() : String(value)
}

/** The first of many names, and how many more there are. */
export function fewOf(names: readonly string[], most: number): string {
  const more = names.length > most ? ` and ${names.length - most} more` : ''
  return `${names.slice(0, most).join(', ')}${more}`
}

/** A value as it may be shown: one line, bounded, without control characters. */
export function show(value: unknown, longest = SHOWN_LENGTH): string {
  const isBare = typeof value === 'number' || value instanceof Date
  const text = isBare ? bare(value) : (JSON.stringify(value, plain) ?? '')
  return shortened(printable(text), longest)
}
