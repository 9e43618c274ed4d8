/** The operations of an API, as requests find them. Built when it is deployed, replaced with it. */
import type { ResourceDefinition } from '../config/api-definition.ts'
import type { ScannedPath } from '../structure/scanned-path.ts'

/** What any method is offered as, in the order of Allow (RFC 9110 9.3, RFC 5789). */
export const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']

/** One operation: a template and a method. Nothing is made of it on the way from its project to the rooms. */
export type Resource = ResourceDefinition

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
