/**
 * Endpoints of an API with variables in the path of their URL: `http://backend/{uri.var.id}/details`. Fills the path
 * in, and sends the request to the endpoints themselves. Other APIs have no such target in front of theirs.
 */
import { hasDotSegment } from '../mediation/field-rules.ts'
import { templateVariable } from '../mediation/request-variables.ts'
import type { TemplatePiece } from '../mediation/endpoint-plan.ts'
import type { Failure, Target } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { HeadEdit } from '../proxy/exchange/head-edit.ts'
import { joinPaths, segmentOf } from '../proxy/mediated/sequence-endpoint.ts'

const PREFIX = 'uri.var.'
const UNSENDABLE: Failure = { base: 102532, state: 0, kind: 'transport', code: '', cause: '', status: 0 }

export class TemplatedTarget implements Target {
  readonly name: string
  readonly readsState = true as const
  readonly #target: Target
  readonly #pieces: readonly TemplatePiece[]
  /** The path as traces show it: values may be secrets. */
  readonly #shown: string

  constructor(target: Target, pieces: readonly TemplatePiece[]) {
    this.name = target.name
    this.#target = target
    this.#pieces = pieces
    this.#shown = pieces.map(piece => (typeof piece === 'string' ? piece : `{${piece.name}}`)).join('')
  }

  send(exchange: Exchange): void {
    const { requestEdit: edit } = exchange
    const own = exchange.canonicalTarget.slice(exchange.backendPathAt)
    let path = ''
    for (const piece of this.#pieces) {
      const value = typeof piece === 'string' ? piece : segmentOf(variableOf(exchange, piece.name).toWellFormed())
      if (value === '') {
        fail(exchange, `the variable ${(piece as { readonly name: string }).name} of the endpoint has no value`)
        return
      }
      path += value
    }
    // A value must not leave the path of the endpoint.
    if (hasDotSegment(path)) {
      fail(exchange, 'a variable of the endpoint makes a dot segment')
      return
    }
    const target = joinPaths(path, edit?.target ?? own)
    const shownTarget = joinPaths(this.#shown, edit?.shownTarget ?? own)
    try {
      const changes = { target, shownTarget }
      exchange.requestEdit = edit === null ? new HeadEdit([], changes) : edit.extended([], changes)
    } catch {
      fail(exchange, 'the path that variables of the endpoint make is too long')
      return
    }
    this.#target.send(exchange)
  }
}

/** A property that a sequence has set, else a segment of the path at that variable of the template. */
function variableOf({ mediation, resource, api, canonicalTarget, backendPathAt }: Exchange, name: string): string {
  const properties = mediation?.state.default ?? []
  const set = properties.find(([known]) => known === name)?.[1]
  if (set !== undefined) return typeof set === 'object' ? '' : String(set)
  const variable = name.slice(PREFIX.length)
  const own = canonicalTarget.slice(backendPathAt)
  const found = resource === null ? undefined : templateVariable(resource.template, own, variable)
  return found ?? (api === null ? undefined : templateVariable(api.path, canonicalTarget, variable)) ?? ''
}

function fail(exchange: Exchange, cause: string): void {
  exchange.source.fail({ ...UNSENDABLE, cause })
}
