/** Loads `graphql` with its first use: on workers, and where projects are read. */
import { createRequire } from 'node:module'
import type * as Graphql from 'graphql'

const require = createRequire(import.meta.url)

export type GraphqlLibrary = typeof Graphql

export function graphqlLibrary(): GraphqlLibrary {
  return require('graphql') as GraphqlLibrary
}
