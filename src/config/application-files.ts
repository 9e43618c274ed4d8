/**
 * Applications that a home declares, for those who want no database: `applications/*.yaml`, one each, with the keys by
 * which their tokens are known and the APIs that they have subscribed to. Any fault is one of the whole configuration:
 * half of what an application may do is not what was meant.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SUPER_TENANT } from './account-names.ts'
import { type Fault, show } from './fault.ts'
import { labelOf, readSource } from './source-file.ts'
import { type Path, YamlFile } from './yaml-file.ts'

export interface DeclaredApplication {
  readonly name: string
  /** '' for the super admin. */
  readonly owner: string
  readonly tenant: string
  readonly tier: string
  readonly attributes: Readonly<Record<string, string>>
  readonly keys: readonly DeclaredKey[]
  readonly subscriptions: readonly DeclaredSubscription[]
}

interface DeclaredKey {
  readonly type: 'PRODUCTION' | 'SANDBOX'
  readonly consumerKey: string
  /** '' for the key manager of this configuration. */
  readonly issuer: string
}

interface DeclaredSubscription {
  /** `name:version`. */
  readonly api: string
  readonly tier: string
  readonly status: (typeof STATUSES)[number]
}

interface ApplicationFiles {
  readonly applications: readonly DeclaredApplication[]
  readonly faults: readonly Fault[]
}

const FOLDER = 'applications'
const FILE = /\.(?:ya?ml|json)$/i
const FILES_MAX = 10_000
const ROWS_MAX = 1000
const CHARS_MAX = 255
const TYPES = ['PRODUCTION', 'SANDBOX'] as const
const STATUSES = ['ACTIVE', 'BLOCKED', 'PROD_ONLY_BLOCKED', 'ON_HOLD', 'REJECTED'] as const
const MEMBERS = ['name', 'owner', 'tenant', 'tier', 'attributes', 'keys', 'subscriptions']
const KEY_MEMBERS = ['type', 'consumerKey', 'issuer']
const SUBSCRIPTION_MEMBERS = ['api', 'tier', 'status']
const API = /^[^:]+:[^:]+$/

/** In the order of the names of files. */
export function readApplications(home: string): ApplicationFiles {
  const faults: Fault[] = []
  const applications: DeclaredApplication[] = []
  const owners = new Map<string, string>()
  for (const name of namesIn(join(home, FOLDER), faults)) {
    const source = readSource(join(home, FOLDER, name))
    if (source === undefined) continue
    const file = source.fault === undefined ? new YamlFile(source.label, source.text) : undefined
    if (file === undefined) faults.push(source.fault!)
    else if (file.faults.length === 0) {
      const application = readApplication(file)
      claim(file, application, owners)
      applications.push(application)
    }
    faults.push(...(file?.faults ?? []))
  }
  return { applications, faults }
}

function namesIn(folder: string, faults: Fault[]): readonly string[] {
  try {
    const names = readdirSync(folder).filter(name => FILE.test(name) && !name.startsWith('.'))
    if (names.length <= FILES_MAX) return names.sort()
    const expected = `has more than ${FILES_MAX} files`
    faults.push({ where: labelOf(folder), key: '', given: '', expected, remedy: 'keep so many in a database' })
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    const expected = `cannot be read: ${code}`
    faults.push({ where: labelOf(folder), key: '', given: '', expected, remedy: 'make it readable' })
  }
  return []
}

function readApplication(file: YamlFile): DeclaredApplication {
  refuseStrangers(file, [], MEMBERS)
  return {
    name: short(file, ['name']),
    owner: shortOr(file, ['owner'], ''),
    tenant: shortOr(file, ['tenant'], SUPER_TENANT),
    tier: shortOr(file, ['tier'], 'Unlimited'),
    attributes: readAttributes(file),
    keys: rows(file, 'keys', KEY_MEMBERS).map(path => ({
      type: choice(file, [...path, 'type'], TYPES, 'PRODUCTION'),
      consumerKey: short(file, [...path, 'consumerKey']),
      issuer: shortOr(file, [...path, 'issuer'], ''),
    })),
    subscriptions: rows(file, 'subscriptions', SUBSCRIPTION_MEMBERS).map(path => ({
      api: readApi(file, [...path, 'api']),
      tier: shortOr(file, [...path, 'tier'], 'Unlimited'),
      status: choice(file, [...path, 'status'], STATUSES, 'ACTIVE'),
    })),
  }
}

function readAttributes(file: YamlFile): Readonly<Record<string, string>> {
  const given = file.value(['attributes'])
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    file.object(['attributes'], undefined, 'expected names with texts', 'write one below the other')
    return {}
  }
  return Object.fromEntries(Object.keys(given).map(name => [name, file.text(['attributes', name]) ?? '']))
}

function readApi(file: YamlFile, path: Path): string {
  const api = short(file, path, 2 * CHARS_MAX)
  if (api !== '' && !API.test(api)) file.object(path, api, 'expected name:version', 'write it as in Orders:1.0.0')
  return api
}

/** Paths of the rows of a list. */
function rows(file: YamlFile, name: string, members: readonly string[]): readonly Path[] {
  const length = file.lengthOf([name])
  if (length === undefined && file.has([name])) file.object([name], undefined, 'expected a list', 'begin rows with -')
  if ((length ?? 0) > ROWS_MAX) file.object([name], length, `has more than ${ROWS_MAX} rows`, 'leave some out')
  const paths = Array.from({ length: Math.min(length ?? 0, ROWS_MAX) }, (_, at) => [name, at])
  for (const path of paths) refuseStrangers(file, path, members)
  return paths
}

function refuseStrangers(file: YamlFile, path: Path, known: readonly string[]): void {
  const value = path.length === 0 ? file.root : file.value(path)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    file.object(path, undefined, `expected ${known.join(', ')}`, 'write name: value')
    return
  }
  for (const name of Object.keys(value)) {
    const remedy = name === 'secret' ? 'secrets stay with the issuer of the tokens' : `there is ${known.join(', ')}`
    if (!known.includes(name)) file.object([...path, name], undefined, 'is not known here', remedy)
  }
}

function short(file: YamlFile, path: Path, max = CHARS_MAX): string {
  const text = (file.text(path) ?? '').trim()
  const isWrong = text.length > max || /\p{Cc}/u.test(text) || (text === '' && file.has(path))
  if (isWrong) file.object(path, show(text), `expected text of 1 to ${max} characters`, 'write another one')
  return text
}

function shortOr(file: YamlFile, path: Path, fallback: string): string {
  return file.has(path) ? short(file, path) : fallback
}

function choice<const T extends string>(file: YamlFile, path: Path, words: readonly T[], fallback: T): T {
  const given = shortOr(file, path, fallback)
  const found = words.find(word => word === given)
  if (found === undefined)
    file.object(path, given, `expected one of ${words.join(', ')}`, `leave it out for ${fallback}`)
  return found ?? fallback
}

/** What only one of all files may have. `owners`: what is taken, and by which file. */
function claim(file: YamlFile, application: DeclaredApplication, owners: Map<string, string>): void {
  const { tenant, owner, name, keys, subscriptions } = application
  const take = (what: string, path: Path, given: string): void => {
    const other = owners.get(what)
    if (other === undefined) owners.set(what, file.where(path))
    else file.object(path, given, `is declared at ${other} already`, 'declare it once')
  }
  take(`application ${tenant} ${owner} ${name}`, ['name'], name)
  keys.forEach(({ issuer, consumerKey }, at) => {
    take(`key ${issuer} ${consumerKey}`, ['keys', at, 'consumerKey'], consumerKey)
  })
  subscriptions.forEach(({ api }, at) => {
    take(`subscription ${tenant} ${owner} ${name} ${api}`, ['subscriptions', at, 'api'], api)
  })
}
