import type { NextConfig } from "next";

const config: NextConfig = {
  // ukemi and its driver run as they are: bundling would lose its SQL migrations
  serverExternalPackages: ["ukemi", "pg"],
  experimental: { useTypeScriptCli: true }, // TypeScript 7 has no JavaScript API for Next.js to call
};

export default config;
