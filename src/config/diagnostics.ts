/** Errors and warnings about files: place, key, given value, what is expected, and a hint. */

export interface Diagnostic {
  /** `conf/deployment.toml:12`, `environment NAME`, or `--set`. */
  readonly where: string
  readonly key: string
  /** As the operator wrote it; '(set)' for a secret, '' where nothing was given. */
  readonly given: string
  readonly expected: string
  /** The remedy; '' for none. */
  readonly hint: string
}

/** Collects every error and warning about files and texts that keys lead to, not only the first. */
export class Diagnostics {
  readonly errors: Diagnostic[] = []
  readonly warnings: Diagnostic[] = []
  /** Log lines for the operator, with their fields. */
  readonly infos: { readonly message: string; readonly fields: Readonly<Record<string, string>> }[] = []

  /** `key`: whole path of a key, or an element of a profile file with its place. */
  error(where: string, key: string, expected: string, hint: string, given = ''): undefined {
    this.errors.push({ where, key, given, expected, hint })
    return undefined
  }

  warn(where: string, key: string, expected: string, hint: string, given = ''): void {
    this.warnings.push({ where, key, given, expected, hint })
  }

  info(message: string, fields: Readonly<Record<string, string>>): void {
    this.infos.push({ message, fields })
  }
}

/** Thrown with every error of a configuration. */
export class ConfigurationErrors extends Error {
  readonly errors: readonly Diagnostic[]

  constructor(errors: readonly Diagnostic[]) {
    super(errors.map(formatDiagnostic).join('\n'))
    this.name = 'ConfigurationErrors'
    this.errors = errors
  }
}

/** `where: key = given: expected (hint)`, printable and bounded. */
export function formatDiagnostic({ where, key, given, expected, hint }: Diagnostic): string {
  const subject = [shortened(key, KEY_LENGTH_MAX), given].filter(part => part !== '').join(' = ')
  const text = [where, subject, expected].filter(part => part !== '').join(': ')
  return shortened(printable(hint === '' ? text : `${text} (${hint})`), LINE_LENGTH_MAX)
}

/** Same for two diagnostics that differ only in line number or hint, so that a reload does not repeat a known one. */
export function diagnosticIdentity({ where, key, given, expected }: Diagnostic): string {
  return JSON.stringify([where.replace(/(?::\d+){1,2}$/, ''), key, given, expected])
}

/** Names in a file may be of any length. */
const KEY_LENGTH_MAX = 200
/** Long enough for a chain of references with its files. */
const LINE_LENGTH_MAX = 4000

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...` : text
}

/** Escapes line ends and control characters, because names of keys and files could hold terminal commands. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, character => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** JSON has no integers beyond 2^53. */
function jsonReplacer(_: string, value: unknown): unknown {
  if (typeof value === 'string') return maskCredentials(value)
  return typeof value === 'bigint' ? Number(value) : value
}

const VALUE_LENGTH_MAX = 60

/**
 * Credentials in a URL: user information before its host, and parameters as database drivers take them. A password may
 * hold any character, so everything up to the last `@` is masked.
 */
const CREDENTIALS = /(:\/\/)\S+(?=@)|\b(password|passwd|pwd|secret|token)=[^&;,\s]+/gi

/** Replaces the credentials of URLs in a text with `(set)`. */
export function maskCredentials(text: string): string {
  return text.replace(CREDENTIALS, (_, host?: string, name?: string) => `${host ?? `${name}=`}(set)`)
}

/** `a, b and 3 more`. */
export function abbreviatedList(names: readonly string[], most: number): string {
  const more = names.length > most ? ` and ${names.length - most} more` : ''
  return `${names.slice(0, most).join(', ')}${more}`
}

/** A value as messages show it: one line of bounded length, credentials masked, control characters escaped. */
export function formatValue(value: unknown, lengthMax = VALUE_LENGTH_MAX): string {
  return shortened(printable(valueText(value)), lengthMax)
}

/** Numbers and dates as TOML writes them, without quotes. */
function valueText(value: unknown): string {
  if (typeof value === 'number') return String(value)
  if (value instanceof Date) return value.toISOString()
  return JSON.stringify(value, jsonReplacer) ?? ''
}
