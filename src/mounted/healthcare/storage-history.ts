/** History: versions of one service or of all, newest first, deletions included. */
import { sql } from 'kysely'
import { FEW_VERSIONS, fittingCount, type StoredVersion, storedVersion } from './storage-rows.ts'
import type { StorageConnection } from './storage-schema.ts'

export interface HistoryRange {
  /** `_since`: versions from this time on, in milliseconds since 1970. */
  readonly sinceMs?: number
  /** `_at`: versions that were current at some time of this period. */
  readonly at?: { readonly startMs: number; readonly endMs: number }
  /** Entries of a page, at most. */
  readonly count: number
  /** Number of the last change of the page before; left out for the first page. */
  readonly before?: number
}

export interface HistoryPage {
  readonly versions: readonly StoredVersion[]
  /** Value of `before` for the next page; null on the last one. */
  readonly next: number | null
  /** Versions of all pages. */
  readonly total: number
}

/** Changes that are made between two pages are newer than both: no version is repeated or lost. */
export async function historyPage(
  { db }: StorageConnection,
  id: string,
  { sinceMs, at, count: asked, before }: HistoryRange,
): Promise<HistoryPage> {
  let all = db.selectFrom('healthcare_versions as v')
  if (id !== '') all = all.where('v.id', '=', id)
  if (sinceMs !== undefined) all = all.where('v.updated_ms', '>=', sinceMs)
  if (at !== undefined) {
    all = all
      .leftJoin('healthcare_versions as later', join =>
        join.onRef('later.id', '=', 'v.id').on(({ eb }) => eb('later.version', '=', eb('v.version', '+', 1))),
      )
      .where('v.updated_ms', '<', at.endMs)
      .where(({ eb }) => eb.or([eb('later.updated_ms', 'is', null), eb('later.updated_ms', '>', at.startMs)]))
  }
  const { total } = await all.select(({ fn }) => fn.countAll().as('total')).executeTakeFirstOrThrow()
  if (before !== undefined) all = all.where('v.change_no', '<', before)
  const newest = all.orderBy('v.change_no', 'desc')
  let count = asked
  if (asked > FEW_VERSIONS) {
    const size = sql<number | string | null>`octet_length(v.content)`
    count = fittingCount(await newest.select(size.as('bytes')).limit(asked).execute(), asked)
  }
  const rows = await newest
    .select(['v.change_no', 'v.id', 'v.version', 'v.updated_ms', 'v.method', 'v.content'])
    .limit(count + 1)
    .execute()
  const page = rows.slice(0, count)
  const last = page.at(-1)
  const next = rows.length > count && last !== undefined ? Number(last.change_no) : null
  return { versions: page.map(storedVersion), next, total: Number(total) }
}
