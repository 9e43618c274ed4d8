/** The operations of an API, as requests find them. Built when it is deployed, replaced with it. */
import type { ScannedPath } from '../structure/scanned-path.ts'

/** What any method is offered as, in the order of Allow (RFC 9110 9.3, RFC 5789). */
export const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']

/** One operation: a template and a method. */
export interface Resource {
  /** As declared: `/pets/{petId}`, `/menu/*`. */
  readonly template: string
  /** The method in capitals; `*` where any is meant. */
  readonly verb: string
  /** As the project has it: `None`, `Application`, `Application User`, `Application & Application User`. */
  readonly authType: string
  /** Name of the throttling policy. */
  readonly tier: string
  /** Any one of them is enough; none: no scope is needed. */
  readonly scopes: readonly string[]
}

/** What may be done at the paths of one template. */
export interface ResourcePath {
  readonly template: string
  /** For Allow: `GET, HEAD, POST`. */
  readonly allow: string
  /** HEAD is served where GET is; OPTIONS only where it is declared. */
  resource(method: string): Resource | undefined
}

export interface ResourceTable {
  /** The most specific template for what comes behind the first `segments` segments of the path. */
  find(path: ScannedPath, segments: number): ResourcePath | null
}
