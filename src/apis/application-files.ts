/**
 * Applications that a home declares without a database: `applications/*.yaml`, one application per file with its
 * consumer keys and subscriptions. Any error refuses the whole configuration, so that no application is half there.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SUPER_TENANT } from '../auth/account-names.ts'
import type { DeclaredApplications, SubscriptionStatus } from '../auth/records.ts'
import type { Configuration } from '../config/catalogue.ts'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { TimeSlices } from '../runtime/time-slices.ts'
import { nameBasedUuid } from '../runtime/name-based-uuid.ts'
import { MemberCheck } from './known-members.ts'
import { APPLICATION_FILE } from './project-members.ts'
import { type Path, YamlFile } from './yaml-file.ts'

/** An application as its file declares it. */
export interface DeclaredApplication {
  readonly name: string
  /** '' for the super admin. */
  readonly owner: string
  readonly tenant: string
  readonly tier: string
  /** File and line of the tier. */
  readonly tierWhere: string
  readonly attributes: Readonly<Record<string, string>>
  readonly keys: readonly DeclaredKey[]
  readonly subscriptions: readonly DeclaredSubscription[]
}

interface DeclaredKey {
  readonly type: 'PRODUCTION' | 'SANDBOX'
  readonly consumerKey: string
  /** '' for the key manager of this configuration. */
  readonly issuer: string
  /** File and line of the issuer. */
  readonly where: string
}

interface DeclaredSubscription {
  /** `name:version`. */
  readonly api: string
  readonly tier: string
  /** File and line of the tier. */
  readonly tierWhere: string
  readonly status: SubscriptionStatus
  /** File and line of the API. */
  readonly where: string
}

interface ApplicationFiles {
  readonly applications: readonly DeclaredApplication[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

const FOLDER = 'applications'
const FILE = /\.(?:ya?ml|json)$/i
const FILES_MAX = 10_000
const ROWS_MAX = 1000
const CHARS_MAX = 255
const KEY_TYPES = ['PRODUCTION', 'SANDBOX'] as const
const STATUSES: readonly SubscriptionStatus[] = ['ACTIVE', 'BLOCKED', 'PROD_ONLY_BLOCKED', 'ON_HOLD', 'REJECTED']
const API = /^[^:]+:[^:]+$/
/** Diagnostics of one kind for all files; the further ones are counted. */
const UNKNOWN_MAX = 50

/** In the order of the file names, in time slices. */
export async function readApplications(home: string): Promise<ApplicationFiles> {
  const errors: Diagnostic[] = []
  const warnings: Diagnostic[] = []
  const applications: DeclaredApplication[] = []
  const declaredAt = new Map<string, string>()
  const slices = new TimeSlices()
  for (const name of fileNames(join(home, FOLDER), errors)) {
    if (slices.isOver) await slices.next()
    const source = readSource(join(home, FOLDER, name))
    if (source === undefined) continue
    if (source.error !== undefined) {
      errors.push(source.error)
      continue
    }
    const file = new YamlFile(source.label, source.text)
    if (file.errors.length === 0) {
      const application = readApplication(file)
      refuseDuplicates(file, application, declaredAt)
      applications.push(application)
    }
    errors.push(...file.errors)
    warnings.push(...file.warnings)
  }
  return { applications, errors, warnings }
}

function fileNames(folder: string, errors: Diagnostic[]): readonly string[] {
  const error = (expected: string, hint: string): void => {
    errors.push({ where: labelOf(folder), key: '', given: '', expected, hint })
  }
  try {
    const names = readdirSync(folder).filter(name => FILE.test(name) && !name.startsWith('.'))
    if (names.length <= FILES_MAX) return names.sort()
    error(`has more than ${FILES_MAX} files`, 'keep that many applications in a database')
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException
    if (code !== 'ENOENT') error(`cannot be read: ${code}`, 'make it readable')
  }
  return []
}

function readApplication(file: YamlFile): DeclaredApplication {
  new MemberCheck(file, true).members(APPLICATION_FILE)
  refuseOther(file, [])
  return {
    name: readShort(file, ['name']),
    owner: readShortOr(file, ['owner'], ''),
    tenant: readShortOr(file, ['tenant'], SUPER_TENANT),
    tier: readShortOr(file, ['tier'], 'Unlimited'),
    tierWhere: file.where(['tier']),
    attributes: readAttributes(file),
    keys: rowsOf(file, 'keys').map(path => ({
      type: readChoice(file, [...path, 'type'], KEY_TYPES, 'PRODUCTION'),
      consumerKey: readShort(file, [...path, 'consumerKey']),
      issuer: readShortOr(file, [...path, 'issuer'], ''),
      where: file.where([...path, 'issuer']),
    })),
    subscriptions: rowsOf(file, 'subscriptions').map(path => ({
      api: readApi(file, [...path, 'api']),
      tier: readShortOr(file, [...path, 'tier'], 'Unlimited'),
      tierWhere: file.where([...path, 'tier']),
      status: readChoice(file, [...path, 'status'], STATUSES, 'ACTIVE'),
      where: file.where([...path, 'api']),
    })),
  }
}

function readAttributes(file: YamlFile): Readonly<Record<string, string>> {
  const given = file.value(['attributes'])
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    file.error(['attributes'], undefined, 'expected names with texts', 'write one below the other')
    return {}
  }
  return Object.fromEntries(Object.keys(given).map(name => [name, file.text(['attributes', name]) ?? '']))
}

function readApi(file: YamlFile, path: Path): string {
  const api = readShort(file, path, 2 * CHARS_MAX)
  if (api !== '' && !API.test(api)) file.error(path, api, 'expected name:version', 'for example Orders:1.0.0')
  return api
}

/** Paths of the rows of a list. */
function rowsOf(file: YamlFile, name: string): readonly Path[] {
  const length = file.lengthOf([name])
  if (length === undefined && file.has([name])) file.error([name], undefined, 'expected a list', 'begin rows with -')
  if ((length ?? 0) > ROWS_MAX) file.error([name], length, `has more than ${ROWS_MAX} rows`, 'leave some out')
  const paths = Array.from({ length: Math.min(length ?? 0, ROWS_MAX) }, (_, at) => [name, at])
  for (const path of paths) refuseOther(file, path)
  return paths
}

/** An error for a value that is no map. */
function refuseOther(file: YamlFile, path: Path): void {
  const value = path.length === 0 ? file.root : file.value(path)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  file.error(path, undefined, 'expected names with their values', 'write name: value')
}

function readShort(file: YamlFile, path: Path, max = CHARS_MAX): string {
  const text = (file.text(path) ?? '').trim()
  const isInvalid = text.length > max || /\p{Cc}/u.test(text) || (text === '' && file.has(path))
  if (isInvalid) file.error(path, text, `expected text of 1 to ${max} characters`, 'write another one')
  return text
}

function readShortOr(file: YamlFile, path: Path, fallback: string): string {
  return file.has(path) ? readShort(file, path) : fallback
}

function readChoice<const T extends string>(file: YamlFile, path: Path, words: readonly T[], fallback: T): T {
  const given = readShortOr(file, path, fallback)
  const choice = words.find(word => word === given)
  if (choice === undefined) {
    file.error(path, given, `expected one of ${words.join(', ')}`, `leave it out for ${fallback}`)
  }
  return choice ?? fallback
}

/** `declaredAt`: file and line of what only one file may declare. */
function refuseDuplicates(file: YamlFile, application: DeclaredApplication, declaredAt: Map<string, string>): void {
  const { tenant, owner, name, keys, subscriptions } = application
  const declare = (identity: string, path: Path, given: string): void => {
    const other = declaredAt.get(identity)
    if (other === undefined) declaredAt.set(identity, file.where(path))
    else file.error(path, given, `is declared at ${other} already`, 'declare it once')
  }
  declare(`application ${tenant} ${owner} ${name}`, ['name'], name)
  keys.forEach(({ issuer, consumerKey }, at) => {
    declare(`key ${issuer} ${consumerKey}`, ['keys', at, 'consumerKey'], consumerKey)
  })
  subscriptions.forEach(({ api }, at) => {
    declare(`subscription ${tenant} ${owner} ${name} ${api}`, ['subscriptions', at, 'api'], api)
  })
}

/**
 * Warns of APIs and issuers that applications name and that this node does not have: nobody calls such an API, and no
 * token of such an issuer is accepted. `apis`: `name:version`; null: the APIs of the gateways are not known here.
 */
export function unknownReferences(
  applications: readonly DeclaredApplication[],
  apis: ReadonlySet<string> | null,
  issuers: ReadonlySet<string>,
): readonly Diagnostic[] {
  const ofIssuers = applications.flatMap(({ keys }) => {
    const unknown = keys.filter(({ issuer }) => issuer !== '' && !issuers.has(issuer))
    return unknown.map(({ issuer, where }) => ({ key: 'keys.issuer', given: issuer, where }))
  })
  const ofApis = applications.flatMap(({ subscriptions }) => {
    const unknown = apis === null ? [] : subscriptions.filter(({ api }) => !apis.has(api))
    return unknown.map(({ api, where }) => ({ key: 'subscriptions.api', given: api, where }))
  })
  return [
    ...unknownNames(ofIssuers, issuers, 'is no issuer of this configuration', 'add it as [[apim.jwt.issuer]]'),
    ...unknownNames(ofApis, apis ?? issuers, 'is no API of this home', 'correct the name, or add the API'),
  ]
}

function unknownNames(
  found: readonly Pick<Diagnostic, 'where' | 'key' | 'given'>[],
  known: ReadonlySet<string>,
  expected: string,
  hint: string,
): readonly Diagnostic[] {
  const shown = found.slice(0, UNKNOWN_MAX).map(({ where, key, given }) => {
    const guess = nearest(given, [...known])
    return { where, key, given: formatValue(given), expected, hint: guess === '' ? hint : `did you mean ${guess}?` }
  })
  const [further] = found.slice(UNKNOWN_MAX)
  if (further === undefined) return shown
  const more = `${found.length - UNKNOWN_MAX} further names are not known`
  return [...shown, { where: further.where, key: further.key, given: '', expected: more, hint: 'correct these first' }]
}

/** The applications as records like those of the database; their ids are the same on every node. */
export function applicationRecords(
  declared: readonly DeclaredApplication[],
  configuration: Configuration,
): DeclaredApplications {
  const admin = configuration.super_admin.username
  const ownIssuer = configuration.oauth['oidc.id_token.issuer']
  const records = declared.map(({ name, owner, tenant, tier, attributes, keys, subscriptions }) => {
    const account = owner || admin
    const id = nameBasedUuid('file', 'application', tenant, account, name)
    return {
      application: { id, name, owner: account, tenant, tier, attributes },
      keys: keys.map(({ type: keyType, consumerKey, issuer }) => {
        return { issuer: issuer || ownIssuer, consumerKey, applicationId: id, keyType }
      }),
      subscriptions: subscriptions.map(({ api, tier: plan, status }) => {
        return { id: nameBasedUuid('file', 'subscription', id, api), applicationId: id, api, tier: plan, status }
      }),
    }
  })
  return {
    applications: records.map(({ application }) => application),
    keys: records.flatMap(({ keys }) => keys),
    subscriptions: records.flatMap(({ subscriptions }) => subscriptions),
  }
}
