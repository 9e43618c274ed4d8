/**
 * Sample of a mounted API (`sluice:sample`): notes of tenants in a database. `conf/guide/mount-an-api.md` explains it.
 * Setting `notes_max`: most notes of one tenant.
 */
import type { MountedDatabase } from '../interface.ts'
import type { MountedContext, MountedRequest, MountedResponse, OpenMountedApi } from '../interface.ts'

interface Tables {
  readonly sample_notes: {
    readonly tenant: string
    readonly id: string
    readonly author: string
    readonly text: string
  }
}

const BODY_BYTES_MAX = 65_536
const NOTES_MAX = 10_000
const PAGE = 100

export const open: OpenMountedApi = async context => {
  const database = context.database<Tables>()
  await database.kysely.schema
    .createTable('sample_notes')
    .ifNotExists()
    .addColumn('tenant', 'varchar(100)', column => column.notNull())
    .addColumn('id', 'varchar(36)', column => column.notNull())
    .addColumn('author', 'varchar(255)', column => column.notNull())
    .addColumn('text', 'text', column => column.notNull())
    .addPrimaryKeyConstraint('sample_notes_key', ['tenant', 'id'])
    .execute()
  const notes = new Notes(context, database)
  return { handle: request => notes.handle(request) }
}

class Notes {
  readonly #log: MountedContext['log']
  readonly #database: MountedDatabase<Tables>
  readonly #notesMax: number

  constructor({ log, settings }: MountedContext, database: MountedDatabase<Tables>) {
    this.#log = log
    this.#database = database
    this.#notesMax = Number(settings.notes_max ?? NOTES_MAX)
  }

  handle(request: MountedRequest): MountedResponse | Promise<MountedResponse> {
    const { verb, template } = request.operation
    switch (`${verb} ${template}`) {
      case 'GET /notes':
        return this.#list(request)
      case 'POST /notes':
        return this.#create(request)
      case 'GET /notes/{id}':
        return this.#read(request)
      case 'DELETE /notes/{id}':
        return this.#remove(request)
      default:
        return json(404, { error: 'the sample has no such operation' })
    }
  }

  async #create(request: MountedRequest): Promise<MountedResponse> {
    const text = textIn(await request.body.text(BODY_BYTES_MAX))
    if (text === null) return json(400, { error: 'the body is {"text": "…"}' })
    const note = { tenant: tenantOf(request), id: crypto.randomUUID(), author: request.caller.user, text }
    const isKept = await this.#database.transaction(async transaction => {
      const { count } = await transaction
        .selectFrom('sample_notes')
        .select(({ fn }) => fn.countAll().as('count'))
        .where('tenant', '=', note.tenant)
        .executeTakeFirstOrThrow()
      if (Number(count) >= this.#notesMax) return false
      await transaction.insertInto('sample_notes').values(note).execute()
      return true
    })
    if (!isKept) return json(409, { error: `a tenant has at most ${this.#notesMax} notes` })
    this.#log('info', 'note created', { TENANT: note.tenant, ID: note.id })
    return json(201, shown(note), [['Location', `${request.url}/notes/${note.id}`]])
  }

  async #read(request: MountedRequest): Promise<MountedResponse> {
    const note = await this.#database.kysely
      .selectFrom('sample_notes')
      .selectAll()
      .where('tenant', '=', tenantOf(request))
      .where('id', '=', request.variables.id ?? '')
      .executeTakeFirst()
    return note === undefined ? NOT_FOUND : json(200, shown(note))
  }

  async #remove(request: MountedRequest): Promise<MountedResponse> {
    const { numDeletedRows } = await this.#database.kysely
      .deleteFrom('sample_notes')
      .where('tenant', '=', tenantOf(request))
      .where('id', '=', request.variables.id ?? '')
      .executeTakeFirstOrThrow()
    return numDeletedRows === 0n ? NOT_FOUND : { status: 204 }
  }

  /** All notes, one JSON text per line: read in pages, as fast as the client takes them. */
  #list(request: MountedRequest): MountedResponse {
    return { status: 200, fields: [['Content-Type', 'application/x-ndjson']], body: this.#lines(tenantOf(request)) }
  }

  async *#lines(tenant: string): AsyncGenerator<string, void, undefined> {
    for (let after = ''; ; ) {
      const page = await this.#database.kysely
        .selectFrom('sample_notes')
        .selectAll()
        .where('tenant', '=', tenant)
        .where('id', '>', after)
        .orderBy('id')
        .limit(PAGE)
        .execute()
      yield page.map(note => `${JSON.stringify(shown(note))}\n`).join('')
      if (page.length < PAGE) return
      after = page.at(-1)!.id
    }
  }
}

/** The tenant in the path; '' where the context has none. */
function tenantOf({ variables }: MountedRequest): string {
  return variables.tenant ?? ''
}

function shown({ id, author, text }: Tables['sample_notes']) {
  return { id, author, text }
}

function textIn(body: string): string | null {
  try {
    const { text } = JSON.parse(body) as { readonly text?: unknown }
    return typeof text === 'string' ? text : null
  } catch {
    return null
  }
}

const NOT_FOUND = json(404, { error: 'there is no such note' })

function json(status: number, value: object, fields: NonNullable<MountedResponse['fields']> = []): MountedResponse {
  return { status, fields: [['Content-Type', 'application/json'], ...fields], body: JSON.stringify(value) }
}
