/**
 * The management commands `application`, `key`, `subscription`, `user`, `mail`, `throttle`, `token` and `revoke`:
 * builds the request of an action, and prints its result.
 */
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { escapeControls } from '../observe/escape.ts'
import { type CliArguments, type CommandOptions, EXIT_USAGE, UsageError } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { readPolicyFile } from './policy-file.ts'
import { table, type Terminal } from './terminal.ts'

type Result = Readonly<Record<string, unknown>>
type Options = CommandOptions['management']

/** Reads a secret that no command line contains; '' if there is none. */
export type SecretSource = () => Promise<string>

interface Action {
  /** Required words, by the member of the request that each becomes. */
  readonly words: readonly string[]
  /** Optional words after them. */
  readonly optionalWords?: readonly string[]
  /** Option -> member of the request; a list is comma-separated. */
  readonly options?: Readonly<Record<string, readonly [member: string, kind: 'text' | 'list' | 'number']>>
  readonly takesPassword?: boolean
  readonly takesToken?: boolean
  /** The word `file` names a policy file, whose content is sent. */
  readonly takesPolicy?: boolean
  /** Action of the request, if it is not the command itself. */
  readonly action?: string
}

const OWNED = { owner: ['owner', 'text'], tenant: ['tenant', 'text'] } as const
const TYPED = { ...OWNED, type: ['type', 'text'] } as const
const TENANT = { tenant: ['tenant', 'text'] } as const
const ONE = { words: ['application'], options: OWNED }
const KEY = { words: ['application', 'key'], options: OWNED }
const REASON = { ...OWNED, reason: ['reason', 'text'] } as const
const DECIDE_PAIR = { words: ['application', 'api'], options: REASON }
const PAIR = { words: ['application', 'api'], options: OWNED }

const LEVEL_AND_POLICY = { words: ['level', 'policy'] }
const DENIED = { words: ['deny'] }

const ACTIONS: Readonly<Record<string, Action>> = {
  'application list': { words: [], options: TENANT },
  'application create': {
    words: ['name'],
    options: {
      ...OWNED,
      tier: ['tier', 'text'],
      description: ['description', 'text'],
      'token-type': ['tokenType', 'text'],
    },
  },
  'application show': ONE,
  'application approve': { words: ['application'], options: REASON },
  'application reject': { words: ['application'], options: REASON },
  'application delete': ONE,
  'key list': ONE,
  'key generate': {
    words: ['application'],
    options: {
      ...TYPED,
      grants: ['grants', 'list'],
      callback: ['redirectUris', 'list'],
      validity: ['validityS', 'number'],
    },
  },
  'key approve': { words: ['application'], options: { ...TYPED, ...REASON } },
  'key reject': { words: ['application'], options: { ...TYPED, ...REASON } },
  'key renew': KEY,
  'key remove': KEY,
  'key api': {
    words: ['application'],
    options: {
      ...TYPED,
      validity: ['validityS', 'number'],
      ips: ['permittedIps', 'list'],
      referers: ['permittedReferers', 'list'],
    },
  },
  'subscription list': { words: [], optionalWords: ['application'], options: OWNED },
  'subscription add': { ...PAIR, options: { ...OWNED, tier: ['tier', 'text'] } },
  'subscription approve': DECIDE_PAIR,
  'subscription reject': DECIDE_PAIR,
  'subscription block': PAIR,
  'subscription block-production': PAIR,
  'subscription unblock': PAIR,
  'subscription remove': PAIR,
  'user list': { words: [], options: TENANT },
  'user add': { words: ['name'], options: { ...TENANT, roles: ['roles', 'list'] }, takesPassword: true },
  'user passwd': { words: ['name'], options: TENANT, takesPassword: true },
  'user remove': { words: ['name'], options: TENANT },
  'mail list': { words: [] },
  'mail retry': { words: [] },
  'throttle policy list': { words: [], optionalWords: ['level'] },
  'throttle policy show': LEVEL_AND_POLICY,
  'throttle policy apply': { words: ['file'], options: { level: ['level', 'text'] }, takesPolicy: true },
  'throttle policy remove': LEVEL_AND_POLICY,
  'throttle deny list': { words: [] },
  'throttle deny add': { words: ['type', 'value'], options: { invert: ['invert', 'text'] } },
  'throttle deny enable': DENIED,
  'throttle deny disable': DENIED,
  'throttle deny remove': DENIED,
  token: { words: ['application'], options: { ...TYPED, scopes: ['scopes', 'list'] } },
  revoke: { words: [], takesToken: true, action: 'token revoke' },
}

/** Throws UsageError. */
export async function manage(
  command: string,
  args: CliArguments,
  { management }: Pick<CommandOptions, 'management'>,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
  readSecret: SecretSource = firstInputLine,
): Promise<number> {
  // The longest name of an action that the words begin with.
  const length = [3, 2, 1].find(each => Object.hasOwn(ACTIONS, [command, ...args.rest].slice(0, each).join(' ')))
  if (length === undefined) return refuseUsage(command, errorOutput)
  const name = [command, ...args.rest].slice(0, length).join(' ')
  const action = ACTIONS[name]!
  const words = args.rest.slice(length - 1)
  if (!hasRightCount(words, action)) return refuseUsage(command, errorOutput)
  const { takesPassword = false, takesToken = false } = action
  const secret = takesPassword || takesToken ? await readSecret() : ''
  if (takesToken && secret === '') return refuseUsage(command, errorOutput)
  const generated = takesPassword && secret === '' ? randomBytes(18).toString('base64url') : ''
  const request = {
    ...(action.takesPolicy ? readPolicyFile(words[0]!) : wordMembers(words, action)),
    ...optionMembers(name, action, management),
    ...(takesPassword && { password: secret || generated }),
    ...(takesToken && { token: secret }),
    action: action.action ?? name,
  }
  return sendAndReport<Result>(args.dataDir, { command: 'manage', request }, errorOutput, answer => {
    const result = generated === '' ? answer : { ...answer, password: generated }
    if (args.json) output.write(`${JSON.stringify(result, null, 2)}\n`)
    else if (name === 'token') output.write(`${String(result.accessToken)}\n`)
    else output.write(format(result, output))
    return 0
  })
}

function refuseUsage(command: string, errorOutput: Terminal): number {
  errorOutput.write(usage(command))
  return EXIT_USAGE
}

function hasRightCount(words: readonly string[], { words: required, optionalWords = [] }: Action): boolean {
  return words.length >= required.length && words.length <= required.length + optionalWords.length
}

function wordMembers(words: readonly string[], { words: required, optionalWords = [] }: Action) {
  const members = [...required, ...optionalWords]
  return Object.fromEntries(words.map((word, at) => [members[at]!, word]))
}

/** Throws UsageError. */
function optionMembers(name: string, { options = {} }: Action, given: Options): Record<string, unknown> {
  const entries = Object.entries(given).map(([option, value]) => {
    const known = options[option]
    if (known === undefined) throw new UsageError(`--${option} is no option of ${name}`)
    const [member, kind] = known
    if (kind === 'number' && !/^-?\d{1,15}$/.test(value)) throw new UsageError(`--${option} is a whole number`)
    return [member, kind === 'number' ? Number(value) : kind === 'list' ? splitList(value) : value]
  })
  return Object.fromEntries(entries)
}

function splitList(value: string): readonly string[] {
  return value
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
}

/** A line for each member; a table for a list of rows. */
function format(result: Result, output: Terminal): string {
  return Object.entries(result)
    .map(([name, value]) => {
      const rows = Array.isArray(value) && value.every(row => typeof row === 'object') ? (value as Result[]) : null
      if (rows === null) return `${name.padEnd(14)} ${cellText(value)}\n`
      if (rows.length === 0) return `no ${name}\n`
      const heading = Object.keys(rows[0]!)
      return table(
        output,
        heading,
        rows.map(row => heading.map(column => cellText(row[column]))),
      )
    })
    .join('')
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(cellText).join(' ')
  return escapeControls(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** Returns '' for a terminal, which would show the secret as it is typed. */
async function firstInputLine(): Promise<string> {
  if (process.stdin.isTTY) return ''
  const lines = createInterface({ input: process.stdin })
  for await (const line of lines) {
    lines.close()
    return line
  }
  return ''
}
