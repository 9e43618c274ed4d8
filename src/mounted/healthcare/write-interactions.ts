/** Interactions that change services: create, update, patch and delete, each also with conditions (R4, http.html). */
import { applyFhirPathPatch } from './fhirpath-patch.ts'
import {
  type Answer,
  demand,
  expectedVersion,
  type Interaction,
  Refused,
  refused,
  RESOURCE_TYPE,
  type WriteRun,
} from './interaction.ts'
import { applyJsonPatch } from './json-patch.ts'
import { isObject, type JsonObject } from './json-text.ts'
import { hasErrors, type Issue } from './outcome.ts'
import { PatchError, patchKind } from './patch-result.ts'
import { isId } from './primitives.ts'
import { unknownService } from './read-interactions.ts'
import { readSearch, type SearchQuery, searchPairs } from './search-query.ts'
import { type Situation, SITUATIONS, situationOfResource } from './situations.ts'
import type { StoredVersion } from './storage-rows.ts'
import { type ChangeResult, type ServiceWriter, StorageRefusal } from './storage.ts'
import { validateResource } from './validation.ts'

/** Parameters of the request that are no criteria. */
const OF_THE_REQUEST: readonly string[] = ['_format', '_pretty']

/** A valid resource, with the warnings about it. */
interface Received {
  readonly resource: JsonObject
  readonly issues: readonly Issue[]
}

type Patch = (current: JsonObject) => JsonObject

/** POST on the type; `If-None-Exist` makes it conditional. `id`: of the new service; left out for a random one. */
export async function create(interaction: Interaction, write: WriteRun, id?: string): Promise<Answer> {
  const { ifNoneExist } = interaction.conditions
  demand(interaction, ifNoneExist === '' ? ['c'] : ['c', 's'])
  const { resource, issues } = await received(interaction)
  if (ifNoneExist === '') {
    return createdBy(await write(writer => writer.create(resource, id)), issues)
  }
  const criteria = criteriaOf(ifNoneExist.replace(/^\?/, ''), 'If-None-Exist')
  return write(async writer => {
    const found = await onlyMatch(writer, criteria, interaction)
    if (found === undefined) return createdBy(await writer.create(resource, id), issues)
    return { status: 200, resource: found.content, version: found, isChange: true, isLocated: true, issues }
  })
}

export async function update(interaction: Interaction, write: WriteRun, id: string): Promise<Answer> {
  demand(interaction, ['u'])
  const { resource, issues } = await received(interaction)
  if (resource.id === undefined) {
    throw refused('id-mismatch', { diagnostics: 'The resource has no id', expression: `${RESOURCE_TYPE}.id` })
  }
  if (resource.id !== id) throw refused('id-mismatch', { expression: `${RESOURCE_TYPE}.id` })
  const result = await write(writer => replace(interaction, writer, id, resource))
  return changedBy(result, issues)
}

/** PUT on the type: the criteria of its query say which service. */
export async function updateMatch(interaction: Interaction, write: WriteRun): Promise<Answer> {
  demand(interaction, ['u', 's'])
  const { resource, issues } = await received(interaction)
  const criteria = criteriaOf(interaction.query)
  return write(async writer => {
    const found = await onlyMatch(writer, criteria, interaction)
    const { id } = resource
    if (found === undefined && typeof id !== 'string') {
      demand(interaction, ['c'])
      if (interaction.conditions.ifMatch !== '') throw refused('version-conflict')
      return createdBy(await writer.create(resource), issues)
    }
    if (found !== undefined && id !== undefined && id !== found.id) {
      throw refused('id-mismatch', { expression: `${RESOURCE_TYPE}.id`, diagnostics: 'Another service matches' })
    }
    const target = found === undefined ? String(id) : found.id
    return changedBy(await replace(interaction, writer, target, { ...resource, id: target }), issues)
  })
}

export async function patch(interaction: Interaction, write: WriteRun, id: string): Promise<Answer> {
  demand(interaction, ['u'])
  const change = await patchOf(interaction)
  return write(writer => patched(interaction, writer, id, change))
}

/** PATCH on the type: the criteria of its query say which service. */
export async function patchMatch(interaction: Interaction, write: WriteRun): Promise<Answer> {
  demand(interaction, ['u', 's'])
  const change = await patchOf(interaction)
  const criteria = criteriaOf(interaction.query)
  return write(async writer => {
    const found = await onlyMatch(writer, criteria, interaction)
    if (found === undefined) throw refused('not-found', { diagnostics: 'No service matches' })
    return patched(interaction, writer, found.id, change)
  })
}

/** 204 also where there is nothing to delete (R4, http.html#delete). */
export async function remove(interaction: Interaction, write: WriteRun, id: string): Promise<Answer> {
  demand(interaction, ['d'])
  return write(writer => removed(interaction, writer, id))
}

/** DELETE on the type: exactly one service matches the criteria, or none. */
export async function removeMatch(interaction: Interaction, write: WriteRun): Promise<Answer> {
  demand(interaction, ['d', 's'])
  const criteria = criteriaOf(interaction.query)
  return write(async writer => {
    const found = await onlyMatch(writer, criteria, interaction)
    if (found === undefined) return NOTHING_LEFT
    return removed(interaction, writer, found.id)
  })
}

const NOTHING_LEFT: Answer = { status: 204, resource: null }

async function removed({ conditions }: Interaction, writer: ServiceWriter, id: string): Promise<Answer> {
  const ifVersion = conditions.ifMatch === '' ? undefined : expectedVersion(conditions.ifMatch, await writer.read(id))
  const stored = await writer.delete(id, ifVersion === undefined ? {} : { ifVersion })
  return stored === null ? NOTHING_LEFT : { ...NOTHING_LEFT, version: stored }
}

/** The next version; a new service only for a caller that may create. */
async function replace(
  interaction: Interaction,
  writer: ServiceWriter,
  id: string,
  resource: JsonObject,
): Promise<ChangeResult> {
  const { ifMatch } = interaction.conditions
  const ifVersion = ifMatch === '' ? undefined : expectedVersion(ifMatch, await writer.read(id))
  if (ifVersion === undefined) {
    const isNew = await writer.read(id).then(stored => stored === undefined || stored.method === 'DELETE')
    if (isNew) demand(interaction, ['c'])
  }
  if (!isId(id)) throw refused('id-mismatch', { diagnostics: 'It has 1 to 64 letters, digits, "-" and "."' })
  return writer.update(id, () => resource, { mayCreate: true, ...(ifVersion === undefined ? {} : { ifVersion }) })
}

async function patched({ conditions }: Interaction, writer: ServiceWriter, id: string, change: Patch): Promise<Answer> {
  const ifVersion = conditions.ifMatch === '' ? undefined : expectedVersion(conditions.ifMatch, await writer.read(id))
  let issues: readonly Issue[] = []
  const next = (current: JsonObject | undefined): JsonObject => {
    const result = change(current!)
    issues = validateResource(result, RESOURCE_TYPE)
    if (hasErrors(issues)) throw new Refused(SITUATIONS['patch-not-applicable'].status, issues)
    return result
  }
  const terms = { method: 'PATCH', ...(ifVersion === undefined ? {} : { ifVersion }) } as const
  return changedBy(await writer.update(id, next, terms), issues)
}

/** Refuses other types of bodies with 415 (R4 has no merge patch). */
async function patchOf({ content }: Interaction): Promise<Patch> {
  const kind = patchKind(content.mediaType)
  if (kind === undefined) throw refused('media-type', { parameter: 'Content-Type' }, [ACCEPT_PATCH])
  const value = await content.json()
  if (kind === 'json-patch') return current => applied(() => applyJsonPatch(current, value))
  const issues = validateResource(value, 'Parameters')
  if (hasErrors(issues)) throw new Refused(SITUATIONS['patch-malformed'].status, issues)
  return current => applied(() => applyFhirPathPatch(current, value as JsonObject))
}

/** RFC 5789 2.2. */
const ACCEPT_PATCH = [
  'Accept-Patch',
  'application/json-patch+json, application/health+json, application/fhir+json',
] as const

function applied(apply: () => JsonObject): JsonObject {
  try {
    return apply()
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    throw refused(error.situation, { diagnostics: error.message })
  }
}

async function received({ content }: Interaction): Promise<Received> {
  const value = await content.json()
  if (isObject(value) && typeof value.resourceType === 'string' && value.resourceType !== RESOURCE_TYPE) {
    throw refused('type-mismatch', { expression: 'resourceType' })
  }
  const issues = validateResource(value, RESOURCE_TYPE)
  if (hasErrors(issues)) throw new Refused(SITUATIONS[situationOfResource(issues)].status, issues)
  return { resource: value as JsonObject, issues }
}

/** `parameter`: the header field of the criteria; left out for the query. */
export function criteriaOf(query: string, parameter?: string): SearchQuery {
  const pairs = searchPairs(query).filter(([name]) => !OF_THE_REQUEST.includes(name))
  const { query: found, issues } = readSearch(pairs, { isStrict: true, isCriteria: true })
  if (found !== null) return found
  const named = parameter === undefined ? issues : issues.map(issue => ({ ...issue, parameter }))
  throw new Refused(SITUATIONS['parameter-value'].status, named)
}

export async function onlyMatch(
  writer: ServiceWriter,
  criteria: SearchQuery,
  { base }: Interaction,
): Promise<StoredVersion | undefined> {
  const [found, ...others] = await writer.matches(criteria, base)
  if (others.length > 0) throw refused('multiple-matches')
  return found
}

function createdBy(stored: StoredVersion, issues: readonly Issue[]): Answer {
  return { status: 201, resource: stored.content, version: stored, isChange: true, isLocated: true, issues }
}

function changedBy({ stored, isCreated }: ChangeResult, issues: readonly Issue[]): Answer {
  if (isCreated) return createdBy(stored, issues)
  return { status: 200, resource: stored.content, version: stored, isChange: true, issues }
}

const OF_REFUSALS: Readonly<Record<StorageRefusal['reason'], Situation>> = {
  conflict: 'version-conflict',
  unknown: 'not-found',
  deleted: 'deleted',
  exists: 'duplicate',
}

/** A refusal of the storage as the client is told; other errors as they are. */
export function explainRefusal(error: unknown): unknown {
  if (!(error instanceof StorageRefusal)) return error
  const { reason, id, current } = error
  if (reason === 'unknown') return unknownService(id)
  const etag = current === null ? [] : [['ETag', `W/"${current.version}"`] as const]
  const diagnostics = current === null ? '' : `The current version is ${current.version}`
  return refused(OF_REFUSALS[reason], { diagnostics }, etag)
}
