/** Resources of an API, for lookups. Built at deployment and replaced with the API. */
import type { ResourceDefinition } from '../../apis/api-definition.ts'
import type { ScannedPath } from '../../route/scanned-path.ts'

/** Methods that APIs can offer, in the order of Allow (RFC 9110 9.3, RFC 5789). */
export const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']

/** One operation: a template and a method, as its project declares it. */
export type Resource = ResourceDefinition

/** The operations of one template. */
export interface ResourcePath {
  readonly template: string
  /** Value of Allow: `GET, HEAD, POST`. */
  readonly allow: string
  /** HEAD falls back to GET; OPTIONS must be declared. */
  resource(method: string): Resource | undefined
}

export interface ResourceTable {
  /** The most specific template for the path behind its first `segments` segments; null without one. */
  find(path: ScannedPath, segments: number): ResourcePath | null
}
