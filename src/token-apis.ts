/** What the APIs for tokens on the gateway's own ports are called, which no project declares. */
export const TOKEN_APIS: readonly string[] = ['_TokenAPI_', '_RevokeAPI_']
