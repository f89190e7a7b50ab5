import type { NextConfig } from "next";

const config: NextConfig = {
  // ukemi and its driver run as they are: bundling would lose its SQL migrations
  serverExternalPackages: ["ukemi", "pg"],
};

export default config;
