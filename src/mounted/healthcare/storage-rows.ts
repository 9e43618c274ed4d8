/** Rows of one version: what a create, a replacement and a deletion write. Every function runs in a transaction. */
import { CompiledQuery, sql } from 'kysely'
import { isObject, type JsonObject, writeJson } from './json-text.ts'
import { type IndexEntries, indexEntries } from './search-index.ts'
import {
  type HealthcareTables,
  type ServiceRow,
  SORTED_PARAMETERS,
  sortColumn,
  type StorageConnection,
  type StoredMethod,
} from './storage-schema.ts'

export interface StoredVersion {
  readonly id: string
  readonly version: number
  readonly updatedMs: number
  readonly method: StoredMethod
  /** JSON of the resource; '' for a deletion. */
  readonly content: string
}

interface NewService {
  readonly id: string
  readonly resource: JsonObject
  readonly method: StoredMethod
}

/** The current version with its row, for a change. */
interface CurrentService {
  readonly pk: number
  readonly stored: StoredVersion
}

/** Another request has changed the service between two statements. */
export class ServiceChanged extends Error {
  override readonly name = 'ServiceChanged'
}

/** Rows of one insert: with 31 columns below the 32,766 parameters of a statement. */
const ROWS_MAX = 500

/** Services with different ids, which are free. Rejects with an error of the driver for one that is not. */
export async function insertServices(
  connection: StorageConnection,
  services: readonly NewService[],
  nowMs: number,
): Promise<readonly StoredVersion[]> {
  const made = services.map(({ id, resource, method }) => {
    const content = stamped(resource, id, 1, nowMs)
    return { stored: { id, version: 1, updatedMs: nowMs, method, content }, entries: indexEntries(resource) }
  })
  for (const some of chunksOf(made)) {
    const changes = await insertVersions(
      connection,
      some.map(({ stored }) => stored),
    )
    const numbered = some.map(({ stored, entries }) => ({ pk: changes.get(stored.id)!, stored, entries }))
    const rows = numbered.map(({ pk, stored, entries }) => serviceRow(pk, pk, stored, entries))
    await insertRows(
      connection,
      'healthcare_services',
      SERVICE_COLUMNS,
      rows.map(row => SERVICE_COLUMNS.map(column => row[column])),
    )
    await insertRows(connection, 'healthcare_sorts', SORT_COLUMNS, numbered.map(sortValues))
    await insertIndex(connection, numbered)
  }
  return made.map(({ stored }) => stored)
}

/** The current version, locked until the transaction ends; undefined for an unknown id. */
export function lockService(connection: StorageConnection, id: string): Promise<CurrentService | undefined> {
  return findService(connection, id, true)
}

export async function findService(
  { db, dialect }: StorageConnection,
  id: string,
  isLocked = false,
): Promise<CurrentService | undefined> {
  const select = db.selectFrom('healthcare_services').select(['pk', 'change_no']).where('id', '=', id)
  // SQLite runs one transaction at a time.
  const row = await (isLocked && dialect !== 'sqlite' ? select.forUpdate() : select).executeTakeFirst()
  if (row === undefined) return undefined
  // Joined, PostgreSQL would look for the new version in the snapshot from before it waited for the lock.
  const version = await db
    .selectFrom('healthcare_versions')
    .select(['id', 'version', 'updated_ms', 'method', 'content'])
    .where('change_no', '=', row.change_no)
    .executeTakeFirstOrThrow()
  return { pk: Number(row.pk), stored: storedVersion(version) }
}

/**
 * The next version of a service; null: its deletion. `before`: the resource of the current version, undefined for a
 * deletion. Rejects with ServiceChanged.
 */
export async function replaceService(
  connection: StorageConnection,
  { pk, stored: current }: CurrentService,
  before: JsonObject | undefined,
  { method, resource }: { readonly method: StoredMethod; readonly resource: JsonObject | null },
  nowMs: number,
): Promise<StoredVersion> {
  const { db } = connection
  const [id, version] = [current.id, current.version + 1]
  // Times of versions differ, whatever the clock does.
  const updatedMs = Math.max(nowMs, current.updatedMs + 1)
  const content = resource === null ? '' : stamped(resource, id, version, updatedMs)
  const stored: StoredVersion = { id, version, updatedMs, method, content }
  const changes = await insertVersions(connection, [stored])
  const entries = resource === null ? NO_ENTRIES : indexEntries(resource)
  const { id: _, pk: __, ...changed } = serviceRow(pk, changes.get(id)!, stored, entries)
  const updated = await db
    .updateTable('healthcare_services')
    .set(changed)
    .where('pk', '=', pk)
    .where('version', '=', current.version)
    .executeTakeFirst()
  if (updated.numUpdatedRows !== 1n)
    throw new ServiceChanged(`service ${id} is no longer at version ${current.version}`)
  await db.deleteFrom('healthcare_sorts').where('pk', '=', pk).execute()
  if (resource !== null) await insertRows(connection, 'healthcare_sorts', SORT_COLUMNS, [sortValues({ pk, entries })])
  await updateIndex(connection, pk, before === undefined ? NO_ENTRIES : indexEntries(before), entries)
  return stored
}

export function storedVersion(row: {
  readonly id: string
  readonly version: number
  readonly updated_ms: number
  readonly method: StoredMethod
  readonly content: string
}): StoredVersion {
  const { id, version, method, content } = row
  return { id, version, updatedMs: Number(row.updated_ms), method, content }
}

/** The resource as it is stored: with its id, version and time, other members as they are. */
function stamped(resource: JsonObject, id: string, version: number, updatedMs: number): string {
  const { resourceType, id: _, meta, ...rest } = resource
  const stamp = { versionId: String(version), lastUpdated: new Date(updatedMs).toISOString() }
  return writeJson({ resourceType, id, meta: { ...(isObject(meta) ? meta : {}), ...stamp }, ...rest })
}

const NO_ENTRIES: IndexEntries = { terms: [], texts: [], present: 0, name: '', sorts: new Map() }

const SERVICE_COLUMNS = [
  ...['pk', 'id', 'change_no', 'version', 'updated_ms', 'is_deleted', 'present', 'name_key'],
] as const satisfies readonly (keyof ServiceRow)[]

function serviceRow(pk: number, change: number, stored: StoredVersion, { present, name }: IndexEntries): ServiceRow {
  const { id, version, updatedMs, method } = stored
  const state = { is_deleted: method === 'DELETE' ? 1 : 0, present, name_key: name }
  return { pk, id, change_no: change, version, updated_ms: updatedMs, ...state }
}

const SORT_COLUMNS: readonly string[] = [
  'pk',
  ...SORTED_PARAMETERS.flatMap(parameter => [sortColumn(parameter, 'low'), sortColumn(parameter, 'high')]),
]

/** In the order of `SORT_COLUMNS`. */
function sortValues({ pk, entries }: { readonly pk: number; readonly entries: IndexEntries }): readonly unknown[] {
  const values: unknown[] = [pk]
  for (const { name } of SORTED_PARAMETERS) {
    const { low = '', high = '' } = entries.sorts.get(name) ?? {}
    values.push(low, high)
  }
  return values
}

const VERSION_COLUMNS = ['id', 'version', 'updated_ms', 'method', 'content']

/** Resolves with the number of the change of each id. */
async function insertVersions(
  connection: StorageConnection,
  versions: readonly StoredVersion[],
): Promise<ReadonlyMap<string, number>> {
  const { db, dialect } = connection
  const rows = versions.map(({ id, version, updatedMs, method, content }) => [id, version, updatedMs, method, content])
  // MySQL has no `returning`.
  const returning = dialect === 'mysql' ? '' : ' returning id, change_no'
  const inserted = await insertRows(connection, 'healthcare_versions', VERSION_COLUMNS, rows, returning)
  if (dialect !== 'mysql') return numbersOf(inserted as { id: string; change_no: number }[])
  const [first] = versions
  if (versions.length === 1) {
    const { rows } = await sql<{ change_no: number }>`select last_insert_id() as change_no`.execute(db)
    return numbersOf([{ id: first!.id, change_no: rows[0]!.change_no }])
  }
  const ids = versions.map(({ id }) => id)
  const select = db.selectFrom('healthcare_versions').select(['id', 'change_no'])
  return numbersOf(await select.where('id', 'in', ids).where('version', '=', first!.version).execute())
}

function numbersOf(rows: readonly { readonly id: string; readonly change_no: number }[]): ReadonlyMap<string, number> {
  return new Map(rows.map(({ id, change_no }) => [id, Number(change_no)]))
}

async function insertIndex(
  connection: StorageConnection,
  services: readonly { readonly pk: number; readonly entries: Pick<IndexEntries, 'terms' | 'texts'> }[],
): Promise<void> {
  // In the order of the index, which many rows reach faster.
  const terms = services.flatMap(({ pk, entries }) => entries.terms.map(term => [term, pk] as const))
  terms.sort(([one, onePk], [other, otherPk]) => (one < other ? -1 : one > other ? 1 : onePk - otherPk))
  for (const rows of chunksOf(terms)) await insertRows(connection, 'healthcare_terms', ['term', 'pk'], rows)
  const texts = services.flatMap(({ pk, entries }) =>
    entries.texts.map(({ parameter, isStart, text }) => [textField(parameter.number, isStart), text, pk]),
  )
  for (const rows of chunksOf(texts)) await insertRows(connection, 'healthcare_texts', ['field', 'text', 'pk'], rows)
}

/** Writes only what differs: most updates change few values. */
async function updateIndex(
  connection: StorageConnection,
  pk: number,
  before: IndexEntries,
  after: IndexEntries,
): Promise<void> {
  const { db } = connection
  const [known, wanted] = [new Set(before.terms), new Set(after.terms)]
  const removed = before.terms.filter(term => !wanted.has(term))
  for (const terms of chunksOf(removed)) {
    await db.deleteFrom('healthcare_terms').where('term', 'in', terms).where('pk', '=', pk).execute()
  }
  const nameOf = ({ parameter, isStart, text }: IndexEntries['texts'][number]) =>
    `${parameter.number} ${isStart} ${text}`
  const [knownTexts, wantedTexts] = [new Set(before.texts.map(nameOf)), new Set(after.texts.map(nameOf))]
  for (const entry of before.texts) {
    if (wantedTexts.has(nameOf(entry))) continue
    const field = textField(entry.parameter.number, entry.isStart)
    const remove = db.deleteFrom('healthcare_texts').where('field', '=', field)
    await remove.where('text', '=', entry.text).where('pk', '=', pk).execute()
  }
  const terms = after.terms.filter(term => !known.has(term))
  const texts = after.texts.filter(entry => !knownTexts.has(nameOf(entry)))
  await insertIndex(connection, [{ pk, entries: { terms, texts } }])
}

/**
 * Inserts rows by a text alone: Kysely makes a tree with a node for each value, which takes longer than the insert.
 * `end`: of the statement. Resolves with the rows that it returns.
 */
async function insertRows(
  { db, dialect }: StorageConnection,
  table: keyof HealthcareTables,
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
  end = '',
): Promise<readonly unknown[]> {
  const parameters = rows.flat()
  let number = 0
  const place = dialect === 'postgresql' ? () => `$${++number}` : () => '?'
  const places = rows.map(row => `(${row.map(place).join(',')})`)
  const text = `insert into ${table} (${columns.join(',')}) values ${places.join(',')}${end}`
  return (await db.executeQuery(CompiledQuery.raw(text, parameters))).rows
}

export function textField(number: number, isStart: boolean): number {
  return number * 2 + (isStart ? 0 : 1)
}

function* chunksOf<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += ROWS_MAX) yield items.slice(at, at + ROWS_MAX)
}

/** A page of more than `FEW_VERSIONS` versions ends before its contents have more bytes. */
const PAGE_BYTES_MAX = 33_554_432
/** So many versions need no such limit, because each has one. */
export const FEW_VERSIONS = 20

/** How many of `count` versions fit into a page, at least one. `sizes`: of their contents, in bytes. */
export function fittingCount(sizes: readonly { readonly bytes: number | string | null }[], count: number): number {
  let total = 0
  for (const [index, { bytes }] of sizes.entries()) {
    total += Number(bytes)
    if (total > PAGE_BYTES_MAX) return Math.max(1, index)
  }
  return count
}
