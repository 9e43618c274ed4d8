/** `application`, `key`, `subscription`, `user`, `token`, `revoke`: what the gateway knows of those who use it. */
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { escapeControls } from '../observe/escape.ts'
import { type CliArguments, type CommandOptions, UsageError, usage } from './arguments.ts'
import { askAndTell } from './ask.ts'
import { EXIT_USAGE } from './exit-codes.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

type Answer = Readonly<Record<string, unknown>>
type Options = CommandOptions['management']

/** Where a secret comes from that is in no command line; '' where there is none. */
export type SecretSource = () => Promise<string>

interface Action {
  /** How the words behind it are called. */
  readonly words: readonly string[]
  /** Words that may be left out. */
  readonly spare?: readonly string[]
  /** Option -> member of the request; one with commas is a list, a number is one. */
  readonly options?: Readonly<Record<string, readonly [member: string, kind: 'text' | 'list' | 'number']>>
  readonly takesPassword?: boolean
  readonly takesToken?: boolean
  /** What is asked for, where it is not the words themselves. */
  readonly action?: string
}

const OWNED = { owner: ['owner', 'text'], tenant: ['tenant', 'text'] } as const
const TYPED = { ...OWNED, type: ['type', 'text'] } as const
const TENANT = { tenant: ['tenant', 'text'] } as const
const ONE = { words: ['application'], options: OWNED }
const KEY = { words: ['application', 'key'], options: OWNED }
const PAIR = { words: ['application', 'api'], options: OWNED }

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
  'subscription list': { words: [], spare: ['application'], options: OWNED },
  'subscription add': { ...PAIR, options: { ...OWNED, tier: ['tier', 'text'] } },
  'subscription block': PAIR,
  'subscription block-production': PAIR,
  'subscription unblock': PAIR,
  'subscription remove': PAIR,
  'user list': { words: [], options: TENANT },
  'user add': { words: ['name'], options: { ...TENANT, roles: ['roles', 'list'] }, takesPassword: true },
  'user passwd': { words: ['name'], options: TENANT, takesPassword: true },
  'user remove': { words: ['name'], options: TENANT },
  token: { words: ['application'], options: { ...TYPED, scopes: ['scopes', 'list'] } },
  revoke: { words: [], takesToken: true, action: 'token revoke' },
}

/** Throws UsageError. */
export async function manage(
  command: string,
  args: CliArguments,
  { management }: Pick<CommandOptions, 'management'>,
  output: Terminal = process.stdout,
  complaints: Terminal = process.stderr,
  secret: SecretSource = firstLine,
): Promise<number> {
  const [word = '', ...others] = args.rest
  const isAlone = Object.hasOwn(ACTIONS, command)
  const name = isAlone ? command : `${command} ${word}`
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  const words = isAlone ? args.rest : others
  if (action === undefined || !fits(words, action)) return misused(command, complaints)
  const given = action.takesPassword === true || action.takesToken === true ? await secret() : ''
  if (action.takesToken === true && given === '') return misused(command, complaints)
  const members = { ...wordsIn(words, action), ...optionsIn(name, action, management) }
  const made = action.takesPassword === true && given === '' ? randomBytes(18).toString('base64url') : ''
  const secrets = {
    ...(action.takesPassword === true && { password: given || made }),
    ...(action.takesToken === true && { token: given }),
  }
  const request = { command: 'manage', request: { ...members, ...secrets, action: action.action ?? name } }
  return askAndTell<Answer>(args.dataDir, request, complaints, answer => {
    const told = made === '' ? answer : { ...answer, password: made }
    if (args.json) output.write(`${JSON.stringify(told, null, 2)}\n`)
    else if (name === 'token') output.write(`${String(told.accessToken)}\n`)
    else output.write(shown(told, output))
    return 0
  })
}

function misused(command: string, complaints: Terminal): number {
  complaints.write(usage(command))
  return EXIT_USAGE
}

function fits(words: readonly string[], { words: needed, spare = [] }: Action): boolean {
  return words.length >= needed.length && words.length <= needed.length + spare.length
}

function wordsIn(words: readonly string[], { words: needed, spare = [] }: Action): Record<string, unknown> {
  return Object.fromEntries(words.map((word, at) => [[...needed, ...spare][at]!, word]))
}

/** Throws UsageError. */
function optionsIn(name: string, { options = {} }: Action, given: Options): Record<string, unknown> {
  const entries = Object.entries(given).map(([option, value]) => {
    const known = options[option]
    if (known === undefined) throw new UsageError(`--${option} is no option of ${name}`)
    const [member, kind] = known
    if (kind === 'number' && !/^-?\d{1,15}$/.test(value)) throw new UsageError(`--${option} is a whole number`)
    return [member, kind === 'number' ? Number(value) : kind === 'list' ? listIn(value) : value]
  })
  return Object.fromEntries(entries)
}

function listIn(value: string): readonly string[] {
  return value
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
}

/** A line for each member; a list of rows is a table. */
function shown(answer: Answer, output: Terminal): string {
  return Object.entries(answer)
    .map(([name, value]) => {
      const rows = Array.isArray(value) && value.every(row => typeof row === 'object') ? (value as Answer[]) : null
      if (rows === null) return `${name.padEnd(14)} ${cell(value)}\n`
      if (rows.length === 0) return `no ${name}\n`
      const heading = Object.keys(rows[0]!)
      return table(
        output,
        heading,
        rows.map(row => heading.map(column => cell(row[column]))),
      )
    })
    .join('')
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(cell).join(' ')
  return escapeControls(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** Of a terminal nothing is asked: what is typed there would be seen. */
async function firstLine(): Promise<string> {
  if (process.stdin.isTTY) return ''
  const lines = createInterface({ input: process.stdin })
  for await (const line of lines) {
    lines.close()
    return line
  }
  return ''
}
